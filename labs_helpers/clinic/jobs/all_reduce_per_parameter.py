"""A job that averages each parameter's gradient on its own, one small message after another."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class AllReducePerParameter(Training):
    def average_gradients(self):
        for gradient in self.gradients():
            self.group.start_mean(gradient).wait()


JOB = Job("small messages", AllReducePerParameter, "average_gradients", slower=1.1)
