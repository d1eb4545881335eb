"""Train without a flush: PipeDream's weight stashing, on one process (Narayanan et al., PipeDream, 2019).

A pipeline that flushes empties itself before each update, so all gradients of a step belong to the same weights.
PipeDream never empties it. While a micro-batch is on its way, the stages that it has passed are updated by the
micro-batches before it. Each stage therefore stashes the weights of a micro-batch's forward pass for its backward pass.
With p stages, these weights are p − 1 − rank updates old when their gradient arrives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

Loss = Callable[[Tensor, Tensor], Tensor]


def delays(ranks: int) -> list[int]:
    """Return, by rank, the number of updates by which PipeDream's gradients are late."""
    return [ranks - 1 - rank for rank in range(ranks)]


def train(
    stages: Sequence[nn.Module],
    batches: Iterable[tuple[Tensor, Tensor]],
    loss_of: Loss,
    lr: float,
    late: Sequence[int] | None = None,
) -> list[float]:
    """Train the stages in place with SGD; return the loss of every step, with the weights that the gradient used.

    batches: pairs (input, target). late: by stage, the age in updates of the weights whose gradient a step uses;
    None: 0 for each, as with a flush. In the first steps the oldest weights are the initial ones. ValueError unless
    there is one number per stage.
    """
    late = [0] * len(stages) if late is None else late
    if len(late) != len(stages):
        raise ValueError(f"{len(late)} delays for {len(stages)} stages")
    stashes = [deque[dict[str, Tensor]](maxlen=age + 1) for age in late]
    losses = []
    for x, target in batches:
        used = []
        for stage, stash in zip(stages, stashes, strict=True):
            stash.append({name: p.detach().clone() for name, p in stage.named_parameters()})
            used.append({name: weight.clone().requires_grad_() for name, weight in stash[0].items()})
            x = functional_call(stage, used[-1], (x,))
        loss = loss_of(x, target)
        losses.append(loss.item())
        gradients = torch.autograd.grad(loss, [weight for weights in used for weight in weights.values()])
        with torch.no_grad():
            for p, gradient in zip((p for stage in stages for p in stage.parameters()), gradients, strict=True):
                p.sub_(gradient, alpha=lr)
    return losses
