"""A job in float16 whose gradients overflow in every step: the factor of the loss never becomes smaller."""

import torch

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training
from labs_helpers.pipeline.loss_scale import LossScale


class StuckScale(LossScale):
    def unscale(self, gradients, groups):
        factor = self.factor
        good = super().unscale(gradients, groups)
        self.factor = factor
        return good


class StuckLossScale(Training):
    """Gradients pass through float16, as those of a model in float16 do."""

    def make_scale(self):
        return StuckScale(2.0 ** self.random.randrange(19, 22))

    def backward(self, loss):
        if not hasattr(self, "scale"):
            self.scale = self.make_scale()
        (loss * self.scale.factor).backward()
        for p in self.model.parameters():
            p.grad = p.grad.to(torch.float16).to(p.dtype)

    def update(self):
        if self.scale.unscale(self.gradients(), [self.group]):
            super().update()
        self.optimizer.zero_grad(set_to_none=True)


JOB = Job("overflow", StuckLossScale, "make_scale", lambda self: LossScale(2.0**19))
