"""Record the short trainings and the time line of a step that lab 07 shows where the reader's machine is too busy.

python -m labs_helpers.tensor_parallel.lab07.recorded      # half a minute, on four ranks
"""

from __future__ import annotations

from typing import Any

from labs_helpers.launch import program
from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.measure.machine import cores_label
from labs_helpers.measure.study import Study
from labs_helpers.tensor_parallel.lab07.step_timeline import Spans, time_steps
from labs_helpers.training import Settings, run
from labs_helpers.training.run import Report

STUDY = Study("tensor-parallel-lab07", "python -m labs_helpers.tensor_parallel.lab07.recorded", "4-core CPU")
LAYOUTS = ((1, 1), (2, 2))
LIMIT_S = 100.0


def settings(dp: int, tp: int) -> Settings:
    """Of the training: lab 06's collectives count what they send, and float64 shows that layouts agree."""
    return Settings(dp=dp, tp=tp, steps=12, batch=16, dtype="float64", report=6, way="own")


def measure() -> list[dict[str, Any]]:
    """The trainings' records, and one per rank of 2 × 2 with its `Spans` without and with overlap."""
    records = []
    for dp, tp in LAYOUTS:
        records += run_on_ranks(run.train, dp * tp, settings(dp, tp), timeout=LIMIT_S)[0].records
    for rank, (after, during) in enumerate(run_on_ranks(time_steps, 4, 2, 2, timeout=LIMIT_S)):
        records.append({"kind": "spans", "rank": rank, "after": after._asdict(), "during": during._asdict()})
    return [record | {"study": STUDY.name} for record in records]


def reports() -> dict[str, Report]:
    """'1 × 1' and '2 × 2' → the recorded report of that training, its losses and records."""
    found = {}
    for (dp, tp), rows in STUDY.load().groupby(["dp", "tp"]):
        records = [row.dropna().to_dict() for _, row in rows.iterrows()]
        (curve,) = (record for record in records if record["kind"] == "curve")
        found[f"{dp:.0f} × {tp:.0f}"] = Report(curve["losses"], {}, records, 0, curve["seconds"], on_gpus=False)
    return found


def steps() -> list[tuple[Spans, Spans]]:
    """What `time_steps` returned on each rank."""
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
