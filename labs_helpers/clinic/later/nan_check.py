"""Looks at every gradient for NaN, one value after another."""

import torch

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class NanCheck(Training):
    def update(self):
        if all(torch.isfinite(gradient).all().item() for gradient in self.gradients()):
            super().update()


JOB = Job("waiting for values", NanCheck, "update")
