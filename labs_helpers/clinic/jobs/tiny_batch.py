"""A job with a batch too small for its device: each kernel has so little work that its launch takes longer."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class TinyBatch(Training):
    batch = 1


JOB = Job("tiny batch", TinyBatch, "batch", slower=1.5)
