"""Examine all jobs of the clinic, sick and cured, and record their findings.

    python -m labs_helpers.clinic.study                    # some minutes on two cores; two GPUs if there are two
    python -m labs_helpers.clinic.study --seeds 1 2 3 --jobs leak straggler
    python -m labs_helpers.clinic.study --costs            # what each instrument costs; needs a quiet machine

A job runs on two ranks. Jobs that hang or die run on their own, and an autopsy reports where their ranks stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labs_helpers.clinic.autopsy import autopsy, findings
from labs_helpers.clinic.costs import costs
from labs_helpers.clinic.records import STUDY, known
from labs_helpers.launch import program
from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.measure.machine import cores_label, this_machine

Record = dict[str, Any]
RANKS = 2


def examined(names: Sequence[str], seed: int, timeout: float = 600) -> list[Record]:
    """Return the findings of jobs, sick and cured, one record each."""
    every = known()
    alive = [name for name in names if not every[name].hangs]
    records = run_on_ranks(_on_rank, RANKS, alive, seed, timeout=timeout)[0] if alive else []
    for name in (name for name in names if every[name].hangs):
        for state in ("sick", "cured"):
            reports = autopsy(getattr(every[name], state), seed)
            records.append({"job": name, "state": state, "findings": findings(reports, RANKS)})
    return records


def _on_rank(comm: Any, names: Sequence[str], seed: int) -> list[Record]:
    from labs_helpers.clinic.examine import examine
    from labs_helpers.communication.torch_distributed import join

    group, every, records = join(comm), known(), []
    for name in names:
        for state in ["sick"] + ["cured"] * bool(every[name].part):
            found = examine(getattr(every[name], state), group, seed)
            found = {finding: float(f"{value:.6g}") for finding, value in found.items()}
            records.append({"job": name, "state": state, "findings": found})
    return records


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--jobs", nargs="+", choices=list(known()), metavar="JOB", help="default: all of them")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="default: 1 2 3")
    parser.add_argument("--costs", action="store_true", help="measure the instruments instead of the jobs")
    given = parser.parse_args(arguments)
    names, machine = given.jobs or list(known()), None if this_machine().device == "cuda" else cores_label()

    def keep(records: list[Record]) -> None:
        STUDY.keep([{"study": STUDY.name} | record for record in records], given.out, machine=machine)

    if given.costs:
        return keep(costs())
    for seed in given.seeds:
        keep([{"seed": seed} | record for record in examined(names, seed)])


if __name__ == "__main__":
    program.run(main)
