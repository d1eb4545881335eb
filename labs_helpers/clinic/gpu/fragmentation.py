"""A job whose sequences get longer from step to step: its tensors fit into no hole that shorter ones have left."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training

LONGER = 21  # a step's sequences are up to 20 tokens longer than the last one's


class Fragmentation(Training):
    """One rank, whose memory would hold a third more than its longest batch; the cure pads all batches to one length."""

    ranks = 1
    batch = 3 * Training.room * Training.batch // 4

    def loss(self, x, y):
        last = getattr(self, "tokens", x.shape[1] // 2)
        self.tokens = min(x.shape[1], last + self.random.randrange(LONGER))
        return super().loss(x[:, : self.tokens], y[:, : self.tokens])


JOB = Job("fragmentation", Fragmentation, "loss")
