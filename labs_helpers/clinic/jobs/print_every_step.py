"""A job that prints in every step: to print a tensor, the program waits for the device and formats its numbers."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class PrintEveryStep(Training):
    def log(self, loss):
        print(
            f"step {self.steps}: loss {loss.detach()}, norms {next(iter(self.model.parameters())).detach().norm(dim=1)}"
        )
        super().log(loss)


JOB = Job("printing", PrintEveryStep, "log")
