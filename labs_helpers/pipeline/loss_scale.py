"""Loss scaling for a model that several ranks share: if a gradient overflows on one rank, all ranks skip the step.

Gradients in float16 are multiplied by a factor so that small ones do not become 0 (Micikevicius et al., Mixed Precision
Training, 2018). If each rank decided alone, the stages of one model would take different numbers of steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from labs_helpers.communication.interface import Communication


class LossScale:
    """The factor of the loss: halved after an overflow, doubled after `growth_interval` good steps in a row.

    pipeline.run(inputs, targets, scale=scale.factor)
    if scale.unscale(gradients, mesh.values()):
        optimizer.step()
    """

    def __init__(self, factor: float = 2.0**16, growth_interval: int = 2000) -> None:
        self.factor, self.growth_interval, self.good_steps = factor, growth_interval, 0

    @torch.no_grad()
    def unscale(self, gradients: Sequence[Tensor], groups: Iterable[Communication]) -> bool:
        """Divide the gradients by the factor, in place, and set the factor of the next step.

        Returns False on every rank if any rank's gradients contain an inf or a NaN: skip the step. groups: along all
        axes of the mesh. Every rank calls this.
        """
        groups = list(groups)
        overflows = torch.zeros(1, device=gradients[0].device if gradients else groups[0].device)
        for gradient in gradients:
            gradient.div_(self.factor)
            overflows += (~gradient.isfinite().all()).float()
        for group in groups:
            overflows = group.all_reduce(overflows, "max")
        if overflows.item():
            self.factor, self.good_steps = self.factor / 2, 0
            return False
        self.good_steps += 1
        if self.good_steps == self.growth_interval:
            self.factor, self.good_steps = self.factor * 2, 0
        return True
