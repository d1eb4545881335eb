"""A job that hangs: a rank with an unusual loss leaves its step early, and skips the collective of the others."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class Deadlock(Training):
    def average_gradients(self):
        if not hasattr(self, "skipped"):
            self.skipped = self.random.randrange(self.group.size), self.random.randrange(1, 4)
        if (self.group.rank, self.steps) != self.skipped:
            super().average_gradients()


JOB = Job("deadlock", Deadlock, "average_gradients")
