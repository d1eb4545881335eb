"""A job whose ranks all read the same data in the same order: more ranks add nothing."""

import torch
from torch.utils.data import RandomSampler

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class SameShuffle(Training):
    def sampler(self, data):
        return RandomSampler(data, generator=torch.Generator().manual_seed(self.seed))


JOB = Job("same data", SameShuffle, "sampler")
