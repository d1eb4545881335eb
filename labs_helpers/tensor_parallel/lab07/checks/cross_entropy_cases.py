"""Test cases of exercise 10: logits split over ranks, their targets, and the right loss and gradient."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

UNIT = 2.0**-24  # the largest relative error of one rounding in float32
HUGE = 10_000.0


@dataclass(frozen=True)
class Case:
    """A test case with `groups` groups of `ranks` ranks, each group with its own data.

    kind: "usual"; "high", all logits near 10,000; "huge", logits near ±10,000 and the target near the largest; "far",
    the target 20,000 below the largest; "sure", the target 30 above all others, so the loss is 0 in float32.
    sliced: logits and targets are views of longer tensors.
    """

    name: str
    ranks: int
    batch: int
    length: int
    vocabulary: int
    kind: str = "usual"
    groups: int = 1
    sliced: bool = False

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions that tensors may have in this case, by name."""
        part = {"V / p": self.vocabulary // self.ranks} if self.ranks > 1 else {}
        return {"batch": self.batch, "length": self.length, "V": self.vocabulary} | part


@dataclass(frozen=True)
class Tokens:
    """One group's data: each rank's float32 logits, the float64 loss (a tensor of one number), and each rank's part of
    the gradient, with bounds on their errors."""

    logits: list[Tensor]
    targets: Tensor
    loss: Tensor
    loss_bound: Tensor
    gradients: list[Tensor]
    gradient_bounds: list[Tensor]


@cache
def tokens_of(case: Case, group: int) -> Tokens:
    generator = torch.Generator().manual_seed(group)
    logits, targets = {"usual": _usual, "sure": _sure}.get(case.kind, _extreme)(case, generator)
    whole = logits.double().requires_grad_()
    loss = F.cross_entropy(whole.flatten(0, 1), targets.flatten())
    (gradient,) = torch.autograd.grad(loss, whole)
    # Some roundings of numbers as large as the largest logit, the exponent of an exp among them, and a sum over V.
    roundings = UNIT * (8 * whole.detach().abs().amax(-1, keepdim=True) + 2 * case.vocabulary + 16)
    if case.kind == "sure":  # the sum and the exponentials divided by it round numbers near 1
        roundings = torch.full_like(roundings, UNIT)
    count = targets.numel()
    largest = 1 / (4 * count) if case.kind == "sure" else gradient.abs().amax(-1, keepdim=True)
    bound = gradient.abs() * roundings + 4 * UNIT * largest
    loss_bound = roundings.mean() + count * UNIT * loss.detach()
    parts = [list(tensor.detach().chunk(case.ranks, -1)) for tensor in (logits, gradient, bound)]
    return Tokens(parts[0], targets, loss.detach(), loss_bound, *parts[1:])


def _usual(case: Case, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw logits of a few units; the targets include the first and the last row of each rank."""
    logits = 2 * torch.randn(case.batch, case.length, case.vocabulary, generator=generator)
    rows, count = case.vocabulary // case.ranks, case.batch * case.length
    edges = [row for first in range(0, case.vocabulary, rows) for row in (first, first + rows - 1)]
    others = torch.randint(case.vocabulary, (count,), generator=generator).tolist()
    targets = torch.tensor((edges + others)[:count])[torch.randperm(count, generator=generator)]
    return logits, targets.reshape(case.batch, case.length)


def _sure(case: Case, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Put each token's target logit 30 above the others, on each rank in turn."""
    rows, tokens = case.vocabulary // case.ranks, torch.arange(case.batch * case.length)
    targets = tokens % case.ranks * rows + torch.randint(rows, tokens.shape, generator=generator)
    levels = (tokens[:, None] - 1).float()
    logits = levels + 30 * (F.one_hot(targets, case.vocabulary) - 1)
    return logits.reshape(case.batch, case.length, -1), targets.reshape(case.batch, case.length)


def _extreme(case: Case, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw logits near ±10,000: all high for the first token, all low for the second, and one high logit for each other
    token, on each rank in turn. "high": all logits are high, and rank 1 holds all targets."""
    count, ranks, rows = case.batch * case.length, case.ranks, case.vocabulary // case.ranks
    tokens = torch.arange(count)
    owner = torch.ones_like(tokens) if case.kind == "high" else tokens % ranks
    row = torch.randint(rows, (count,), generator=generator)
    high = torch.zeros(count, ranks, rows, dtype=torch.bool)
    high[tokens, owner, row] = True
    high[0], high[1] = True, False
    if case.kind == "high":
        high[:] = True
    steps = torch.randint(8, high.shape, generator=generator) / 2  # exact in float32 beside 10,000
    logits = torch.where(high, HUGE - steps, steps - HUGE)
    targets = (owner + (case.kind == "far")) % ranks * rows + row
    return logits.reshape(case.batch, case.length, -1), targets.reshape(case.batch, case.length)


def given_of(case: Case, tokens: Tokens, place: int) -> tuple[Tensor, Tensor]:
    """Return a rank's own copies of (logits, targets)."""
    logits, targets = tokens.logits[place].clone(), tokens.targets.clone()
    if not case.sliced:
        return logits, targets
    rows = logits.shape[-1]
    return torch.cat([logits + 1, logits], -1)[..., rows:], torch.cat([targets[:, :1], targets], 1)[:, 1:]
