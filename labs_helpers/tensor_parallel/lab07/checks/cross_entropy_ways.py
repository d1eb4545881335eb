"""Ways to compute cross-entropy over a split vocabulary, right ones and wrong ones, on all ranks at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


def begins(rank: int, rows: int, ranks: int) -> int:
    """The first token of a rank's part."""
    return rank * rows


@dataclass(frozen=True)
class Way:
    """shift: what is subtracted: the largest of "all" ranks, the rank's "own", the largest of all "tokens", or of all
    on this rank ("own tokens"), the "sum" of the ranks' largest, or "nothing". first: begins(), or a mistake. mask: see
    `_rows`. parts: into how many a rank's rows are cut once more. total, target: the sum of exponentials and the
    target's logit: of "all" ranks, the rank's "own", the "largest", the "mean" or the "first" rank's. shifted: the
    target's logit is read after the shift; else before it, and the shift is taken from what all ranks have."""

    shift: str = "all"
    first: Callable[[int, int, int], int] = begins
    mask: str = "right"
    parts: int = 1
    total: str = "all"
    target: str = "all"
    shifted: bool = True


@dataclass(frozen=True)
class Steps:
    """What each rank has: of (batch, length) largest, total and target (both after the shift), of the logits' shape
    exponentials and one (1 at the target)."""

    largest: list[Tensor]
    total: list[Tensor]
    target: list[Tensor]
    exponentials: list[Tensor]
    one: list[Tensor]

    def losses(self) -> list[Tensor]:
        """Of each token, on each rank."""
        return [total.log() - target for total, target in zip(self.total, self.target, strict=True)]

    def gradients(self, one: float = 1.0) -> list[Tensor]:
        """Of the sum of the losses, with `one` subtracted at the target."""
        parts = zip(self.exponentials, self.total, self.one, strict=True)
        return [exponentials / total[..., None] - one * at for exponentials, total, at in parts]


def steps(logits: list[Tensor], targets: Tensor, way: Way) -> Steps:
    ranks, rows = len(logits), logits[0].shape[-1]
    largest = _shifts(logits, way.shift)
    shifted = [part - one[..., None] for part, one in zip(logits, largest, strict=True)]
    exponentials = [one.exp() for one in shifted]
    at, ones = [], []
    for rank, (one, read) in enumerate(zip(shifted, shifted if way.shifted else logits, strict=True)):
        part = max(rows // way.parts, 1)
        row, counts = _rows(targets - way.first(rank, part, ranks), part, way.mask)
        at.append(torch.where(counts, read.gather(-1, row[..., None])[..., 0], 0))
        ones.append(torch.zeros_like(one).scatter_(-1, row[..., None], counts.to(one.dtype)[..., None]))
    totals = _over_ranks([one.sum(-1) for one in exponentials], way.total)
    targets = _over_ranks(at, way.target)
    if not way.shifted:
        targets = [one - shift for one, shift in zip(targets, largest, strict=True)]
    return Steps(largest, totals, targets, exponentials, ones)


def _shifts(logits: list[Tensor], shift: str) -> list[Tensor]:
    own = [part.amax(-1) for part in logits]
    if shift == "nothing":
        return [torch.zeros_like(one) for one in own]
    if shift == "tokens":
        return [torch.full_like(one, float(torch.stack(own).max())) for one in own]
    if shift == "own tokens":
        return [torch.full_like(one, float(one.max())) for one in own]
    return _over_ranks(own, {"all": "largest", "sum": "all", "own": "own"}[shift])


def _over_ranks(own: list[Tensor], how: str) -> list[Tensor]:
    if how == "own":
        return own
    every = torch.stack(own)
    if how == "largest":
        result = every.amax(0)
    elif how == "first":
        result = every[0]
    else:
        result = every.sum(0) / (len(own) if how == "mean" else 1)
    return [result] * len(own)


def _rows(row: Tensor, rows: int, mask: str) -> tuple[Tensor, Tensor]:
    """(which row is read, whether it counts)."""
    inside = (row >= 0) & (row < rows)
    clamped, everywhere = row.clamp(0, rows - 1), torch.ones_like(inside)
    return {
        "right": (clamped, inside),
        "clamped": (clamped, everywhere),
        "first": (torch.where(inside, row, 0), everywhere),
        "modulo": (row % rows, everywhere),
        "from the end": (torch.where(row < 0, row + rows, row).clamp(0, rows - 1), row < rows),
        "below only": (clamped, row < rows),
        "above only": (clamped, row >= 0),
        "not the first": (clamped, inside & (row > 0)),
        "not the last": (clamped, inside & (row < rows - 1)),
        "one more": (clamped, (row >= 0) & (row <= rows)),
        "one before": (clamped, (row >= -1) & (row < rows)),
    }[mask]
