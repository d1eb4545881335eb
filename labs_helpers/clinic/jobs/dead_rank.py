"""A job that loses a rank: the system kills its process in the middle of a step."""

import os
import signal

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class DeadRank(Training):
    def backward(self, loss):
        if not hasattr(self, "dies"):
            self.dies = self.random.randrange(self.group.size), self.random.randrange(1, 4)
        if (self.group.rank, self.steps) == self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        super().backward(loss)


JOB = Job("dead rank", DeadRank, "backward")
