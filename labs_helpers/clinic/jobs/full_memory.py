"""A healthy job whose large batch fills most of the memory: it looks alarming, and is as fast as it should be."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class FullMemory(Training):
    batch = Training.room * Training.batch


JOB = Job("healthy", FullMemory)
