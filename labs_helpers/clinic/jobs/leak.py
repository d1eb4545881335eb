"""A job that leaks memory: it keeps a metric of every step for later, and with the metric its graph."""

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training
from labs_helpers.transformer.train import next_token_loss


class Leak(Training):
    def loss(self, x, y):
        logits = self.forward(x)
        probabilities = logits.softmax(-1)
        self.entropies = [*getattr(self, "entropies", []), -(probabilities * probabilities.log()).sum(-1).mean()]
        return next_token_loss(logits, y)


JOB = Job("leak", Leak, "loss")
