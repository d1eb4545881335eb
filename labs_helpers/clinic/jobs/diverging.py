"""A job whose replicas drift apart in silence: one parameter's gradient is left out of the average."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class Diverging(Training):
    def average_gradients(self):
        gradients = self.gradients()
        del gradients[self.left_out(len(gradients))]
        self.group.start_mean(*gradients).wait()

    def left_out(self, count):
        if not hasattr(self, "chosen"):
            self.chosen = self.random.randrange(count)
        return self.chosen


JOB = Job("diverging replicas", Diverging, "average_gradients")
