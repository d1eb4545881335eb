"""A job that compiles again and again: its compiled part sees another length in every step."""

import logging

import torch

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training
from labs_helpers.transformer.train import next_token_loss


class Recompiling(Training):
    def loss(self, x, y):
        if not hasattr(self, "compiled"):
            torch._dynamo.reset()
            torch._logging.set_logs(dynamo=logging.ERROR)  # it warns when it gives up, after eight compilations
            self.compiled = torch.compile(next_token_loss, backend="aot_eager", dynamic=False)
        length = x.shape[1] - self.random.randrange(x.shape[1] // 2)
        return self.compiled(self.forward(x[:, :length]), y[:, :length])


JOB = Job("recompilation", Recompiling, "loss", slower=2)
