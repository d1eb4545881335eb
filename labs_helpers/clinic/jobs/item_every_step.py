"""A job that reads its loss in every step: .item() waits until the device has computed it."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class ItemEveryStep(Training):
    def log(self, loss):
        self.sum += loss.item()
        norm = sum(p.detach().square().sum().item() for p in self.model.parameters()) ** 0.5
        if self.steps % self.log_every == 0:
            self.logged.append(self.sum.item() / self.log_every)
            self.norm = norm
            self.sum.zero_()


JOB = Job("waiting for values", ItemEveryStep, "log")
