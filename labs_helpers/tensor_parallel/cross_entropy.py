"""Cross-entropy over a split vocabulary: the ranks exchange three numbers per token instead of the logits.

Shoeybi et al., Megatron-LM, 2019, section 3.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labs_helpers.communication import Communication
from labs_helpers.tensor_parallel.layers import check_tokens, own_rows


class _CrossEntropy(torch.autograd.Function):
    """Loss per token = log Σ exp(logit − m) − (target's logit − m), with m the largest logit over all ranks."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, group: Communication) -> Tensor:
        largest = group.all_reduce(logits.amax(-1), "max")
        shifted = logits - largest[:, None]
        row, elsewhere = own_rows(targets, logits.shape[-1], group.rank)
        at_target = shifted.gather(-1, row[:, None])[:, 0].masked_fill(elsewhere, 0)
        exponentials = shifted.exp_()
        total, at_target = group.all_reduce(torch.stack([exponentials.sum(-1), at_target]))
        ctx.save_for_backward(exponentials.div_(total[:, None]), row, elsewhere)
        return total.log() - at_target

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        # The softmax minus 1 at the target, for this rank's part of the vocabulary, needs no communication.
        probabilities, row, elsewhere = ctx.saved_tensors
        result = probabilities * gradient[:, None]
        result.scatter_add_(-1, row[:, None], -gradient.masked_fill(elsewhere, 0)[:, None])
        return result, None, None


def vocabulary_parallel_cross_entropy(logits: Tensor, targets: Tensor, group: Communication) -> Tensor:
    """Return the mean cross-entropy in nats per token, the same on every rank.

    logits: (B, L, V / p), this rank's part of the vocabulary; targets: (B, L) of int64, the same on every rank. The
    loss is float32, or float64 if the logits are. Raises IndexError for a target outside the vocabulary, only on CPUs.
    """
    check_tokens(targets, logits.shape[-1] * group.size)
    wide = logits.flatten(0, -2).to(torch.promote_types(logits.dtype, torch.float32))
    return _CrossEntropy.apply(wide, targets.flatten(), group).mean()
