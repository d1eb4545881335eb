"""Every rank draws its own weights."""

import torch

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class OwnWeights(Training):
    def make_model(self):
        torch.manual_seed(self.seed + self.group.rank)
        return super().make_model()


JOB = Job("diverging replicas", OwnWeights, "make_model")
