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
    rows = STUDY.recorded()[STUDY.machine].dropna(subset="job").to_dict("records")
    prefix = "findings."
    return [
        {name: row[name] for name in ("job", "state", "seed")}
        | {
            "findings": {
                name.removeprefix(prefix): value
                for name, value in row.items()
                if name.startswith(prefix) and value == value  # NaN: another job's finding
            }
        }
        for row in rows
    ]


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
    """Return name → job of all jobs, the later ones included."""
    return jobs() | jobs("later")
