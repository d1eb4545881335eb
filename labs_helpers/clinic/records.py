"""The records of the clinic: the findings of each job, sick and cured, with several seeds; the instruments' costs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from labs_helpers.clinic.causes import HEALTHY
from labs_helpers.clinic.costs import NOTHING
from labs_helpers.clinic.job import Job, jobs
from labs_helpers.measure.records import select
from labs_helpers.measure.study import Study

if TYPE_CHECKING:
    import pandas

STUDY = Study("clinic", "python -m labs_helpers.clinic.study", machine="2-core-cpu")


@cache
def recorded() -> list[dict[str, Any]]:
    """Return the records that came with the course: job, state ('sick' or 'cured'), seed, findings."""
    return [_record(row) for row in STUDY.recorded()[STUDY.machine].dropna(subset="job").to_dict("records")]


def fragmentation(machine: str) -> list[dict[str, Any]]:
    """Return a GPU's records of the job `fragmentation`, which also have 'steps' and 'refused'; see
    `allocator.examine_allocator`. [] if there are none. machine: as for `Study.load`."""
    try:
        rows = STUDY.load(machine).to_dict("records")
    except FileNotFoundError:
        return []
    return [_record(row) for row in rows if row["job"] == "fragmentation"]


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Undo the flattening of a record; another job's findings are NaN here."""
    found: dict[str, Any] = {"job": row["job"], "state": row["state"], "seed": int(row["seed"])}
    for name, value in row.items():
        part, _, key = name.partition(".")
        if part in ("findings", "steps", "refused") and value == value:
            found.setdefault(part, {})[key] = value
    return found


def recorded_costs() -> pandas.DataFrame:
    """Return the times of the healthy job's steps while an instrument watches them, by its name.

    `relative`: the median, relative to that of steps that nothing watches.
    """
    rows = select(STUDY.load(), "cost", ["instrument"]).set_index("instrument")
    return rows.assign(relative=rows["step_ms"] / rows["step_ms"][NOTHING])


def cause_of(record: Mapping[str, Any]) -> str:
    """Return what is wrong with the job of a record."""
    job = known()[record["job"]]
    return job.cause if record["state"] == "sick" else HEALTHY


def known() -> dict[str, Job]:
    """Return name → job of all jobs: also the later ones, and those that need a GPU."""
    return jobs() | jobs("later") | jobs("gpu")
