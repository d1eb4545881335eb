"""One rank evaluates the model after every step, and the others wait for it in the next."""

import torch

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class EvaluatingRank(Training):
    @torch.no_grad()
    def log(self, loss):
        if self.group.rank == 0:
            for _ in range(6):
                self.model(torch.zeros(self.batch, self.length, dtype=torch.long, device=self.device))
        super().log(loss)


JOB = Job("straggler", EvaluatingRank, "log", slower=1.3)
