"""Passes the number of the step to a compiled function, which specializes on it."""

import logging

import torch

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training
from labs_helpers.transformer.train import next_token_loss


def weighted(logits, targets, step):
    return next_token_loss(logits, targets) * (1.0 if step % 10 else 1.001)


class StepInGraph(Training):
    def loss(self, x, y):
        if not hasattr(self, "compiled"):
            torch._dynamo.reset()
            torch._logging.set_logs(dynamo=logging.ERROR)
            self.compiled = torch.compile(weighted, backend="aot_eager", dynamic=False)
        return self.compiled(self.forward(x), y, self.steps)


JOB = Job("recompilation", StepInGraph, "loss", slower=2)
