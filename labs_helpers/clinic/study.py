"""Examine all jobs of the clinic, sick and cured, and record their findings.

    python -m labs_helpers.clinic.study                    # some minutes on two cores; two GPUs if there are two
    python -m labs_helpers.clinic.study --seeds 1 2 3 --jobs leak straggler
    python -m labs_helpers.clinic.study --costs            # what each instrument costs; needs a quiet machine
    python -m labs_helpers.clinic.study --jobs fragmentation    # on one GPU

Each job runs on as many ranks as it says, with a GPU per rank if there are enough. Jobs that hang or die run on their
own, and an autopsy reports where their ranks stood. What needs a GPU is left out where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labs_helpers.clinic.autopsy import QUIET_S, autopsy, findings
from labs_helpers.clinic.costs import RANKS as COSTS_RANKS
from labs_helpers.clinic.costs import costs
from labs_helpers.clinic.job import Job
from labs_helpers.clinic.records import STUDY, known
from labs_helpers.communication.torch_distributed import gpu_per_rank
from labs_helpers.launch import program
from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.measure.machine import cores_label

Record = dict[str, Any]
QUIET_ON_GPUS_S = 3 * QUIET_S  # a GPU loads each kernel when it is first used


def examined(names: Sequence[str], seed: int, timeout: float = 600) -> list[Record]:
    """Return the findings of jobs, sick and cured, one record each."""
    every, records, together = known(), list[Record](), dict[int, list[str]]()
    for name in names:
        if every[name].hangs:
            records += [_autopsied(name, state, seed) for state in ("sick", "cured")]
        elif every[name].needs_gpu:
            for state in ("sick", "cured"):
                records += run_on_ranks(_on_gpu, every[name].sick.ranks, name, state, seed, timeout=timeout)
        else:
            together.setdefault(every[name].sick.ranks, []).append(name)
    for ranks, some in together.items():
        records += run_on_ranks(_on_rank, ranks, some, seed, timeout=timeout)[0]
    return records


def _autopsied(name: str, state: str, seed: int) -> Record:
    job, ranks = getattr(known()[name], state), known()[name].sick.ranks
    reports = autopsy(job, seed, ranks, quiet=QUIET_ON_GPUS_S if gpu_per_rank(ranks) else QUIET_S)
    return {"job": name, "state": state, "findings": findings(reports, ranks)}


def _on_gpu(comm: Any, name: str, state: str, seed: int) -> Record:
    from labs_helpers.clinic.allocator import examine_allocator

    found = examine_allocator(getattr(known()[name], state), seed)
    return {"job": name, "state": state} | found | {"findings": _rounded(found["findings"])}


def _on_rank(comm: Any, names: Sequence[str], seed: int) -> list[Record]:
    from labs_helpers.clinic.examine import examine
    from labs_helpers.communication.torch_distributed import join

    group, every, records = join(comm), known(), []
    for name in names:
        for state in ["sick"] + ["cured"] * bool(every[name].part):
            found = examine(getattr(every[name], state), group, seed)
            records.append({"job": name, "state": state, "findings": _rounded(found)})
    return records


def _rounded(found: Record) -> Record:
    return {finding: float(f"{value:.6g}") for finding, value in found.items()}


def can_run(name: str, job: Job) -> bool:
    """Return whether this machine can run a job; if not, say why."""
    if job.needs_gpu and not gpu_per_rank(job.sick.ranks):
        print(f"{name} is left out: it is about CUDA's caching allocator, and PyTorch sees no GPU here.")
        return False
    return True


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--jobs", nargs="+", choices=list(known()), metavar="JOB", help="default: all of them")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="default: 1 2 3")
    parser.add_argument("--costs", action="store_true", help="measure the instruments instead of the jobs")
    given = parser.parse_args(arguments)
    if given.costs:
        machine = None if gpu_per_rank(COSTS_RANKS) else cores_label()
        return STUDY.keep([{"study": STUDY.name} | record for record in costs()], given.out, machine=machine)
    names = [name for name in given.jobs or known() if can_run(name, known()[name])]
    for seed in given.seeds:
        for gpus in (True, False):
            some = [name for name in names if gpu_per_rank(known()[name].sick.ranks) == gpus]
            if some:
                found = [{"study": STUDY.name, "seed": seed} | record for record in examined(some, seed)]
                STUDY.keep(found, given.out, machine=None if gpus else cores_label())


if __name__ == "__main__":
    program.run(main)
