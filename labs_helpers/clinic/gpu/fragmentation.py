"""A job whose sequences get longer from step to step: its tensors fit into no hole that shorter ones have left."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training

MOST = 20  # tokens by which a step's sequences are longer than the last one's


class Fragmentation(Training):
    """One rank, whose memory could hold a larger batch than its longest. The cure pads all batches to one length."""

    ranks = 1
    batch = 3 * Training.room * Training.batch // 4

    def loss(self, x, y):
        last = getattr(self, "tokens", x.shape[1] // 2)
        self.tokens = min(x.shape[1], last + self.random.randrange(MOST + 1))
        return super().loss(x[:, : self.tokens], y[:, : self.tokens])


JOB = Job("fragmentation", Fragmentation, "loss")
