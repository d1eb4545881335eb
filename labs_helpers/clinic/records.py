"""The records of the clinic: the findings of each job, sick and cured, with several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labs_helpers.clinic.causes import HEALTHY
from labs_helpers.clinic.job import Job, jobs
from labs_helpers.measure.study import Study

STUDY = Study("clinic", "python -m labs_helpers.clinic.study", machine="2-core-cpu")


def cause_of(record: Mapping[str, Any]) -> str:
    """Return what is wrong with the job of a record."""
    job = known()[record["job"]]
    return job.cause if record["state"] == "sick" else HEALTHY


def known() -> dict[str, Job]:
    """Return name → job of all jobs, the later ones included."""
    return jobs() | jobs("later")
