"""Record the time line of a step, which lab 07 shows if the reader's machine is too busy to measure one.

python -m labs_helpers.tensor_parallel.lab07.recorded      # on four ranks
"""

from __future__ import annotations

from typing import Any

from labs_helpers.launch import program
from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.measure.machine import cores_label
from labs_helpers.measure.study import Study
from labs_helpers.tensor_parallel.lab07.step_timeline import Spans, time_steps

STUDY = Study("tensor-parallel-lab07", "python -m labs_helpers.tensor_parallel.lab07.recorded", "4-core CPU")
LIMIT_S = 100.0


def measure() -> list[dict[str, Any]]:
    """Return one record per rank of a 2 × 2 grid, with its `Spans` without and with overlap."""
    records = []
    for rank, (after, during) in enumerate(run_on_ranks(time_steps, 4, 2, 2, timeout=LIMIT_S)):
        records.append({"kind": "spans", "rank": rank, "after": after._asdict(), "during": during._asdict()})
    return [record | {"study": STUDY.name} for record in records]


def steps() -> list[tuple[Spans, Spans]]:
    """Load the recorded result of `time_steps` on each rank."""
    rows = STUDY.load()
    rows = rows[rows["kind"] == "spans"].sort_values("rank")
    return [
        tuple(Spans(*(row[f"{when}.{part}"] for part in Spans._fields)) for when in ("after", "during"))
        for _, row in rows.iterrows()
    ]


def main(arguments: list[str] | None = None) -> None:
    given = STUDY.parser(__doc__).parse_args(arguments)
    STUDY.keep(measure(), given.out, machine=cores_label())


if __name__ == "__main__":
    program.run(main)
