"""A healthy job: the program as it is."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training

JOB = Job("healthy", Training)
