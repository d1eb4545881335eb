"""The records of the clinic: the findings of each job, sick and cured, with several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from labs_helpers.clinic.causes import HEALTHY
from labs_helpers.clinic.job import Job, jobs
from labs_helpers.measure.study import Study

STUDY = Study("clinic", "python -m labs_helpers.clinic.study", machine="2-core-cpu")


@cache
def recorded() -> list[dict[str, Any]]:
    """Return the records that came with the course: job, state ('sick' or 'cured'), seed, findings."""
    rows = STUDY.recorded()[STUDY.machine].to_dict("records")
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


def cause_of(record: Mapping[str, Any]) -> str:
    """Return what is wrong with the job of a record."""
    job = known()[record["job"]]
    return job.cause if record["state"] == "sick" else HEALTHY


def known() -> dict[str, Job]:
    """Return name → job of all jobs, the later ones included."""
    return jobs() | jobs("later")
