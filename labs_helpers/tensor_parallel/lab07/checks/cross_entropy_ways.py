"""Right and wrong ways to compute cross-entropy over a split vocabulary, for all ranks together."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor

# Combines the ranks' values: a function from (p, batch, length) to the same shape.
Over = Callable[[Tensor], Tensor]
FIRSTS: dict[str, Callable[[Tensor, int, int], Tensor]] = {  # a part's first token, by (rank, V / p, p)
    "rank · V": lambda rank, rows, ranks: rank * rows * ranks,
    "0 on every rank": lambda rank, rows, ranks: 0 * rank,
    "rank": lambda rank, rows, ranks: rank,
    "rank · p": lambda rank, rows, ranks: rank * ranks,
    "(rank + 1) · V / p": lambda rank, rows, ranks: (rank + 1) * rows,
    "rank · V / p + 1": lambda rank, rows, ranks: rank * rows + 1,
    "rank · V / p − 1": lambda rank, rows, ranks: rank * rows - 1,
    "the parts counted from the last rank": lambda rank, rows, ranks: (ranks - 1 - rank) * rows,
}
MASKS: dict[str, Callable[[Tensor, int], tuple[Tensor, Tensor]]] = {  # (the row that is read, whether it counts)
    "right": lambda row, rows: (row, (row >= 0) & (row < rows)),
    "clamped": lambda row, rows: (row, row == row),
    "first": lambda row, rows: (torch.where((row >= 0) & (row < rows), row, 0), row == row),
    "modulo": lambda row, rows: (row % rows, row == row),
    "from the end": lambda row, rows: (torch.where(row < 0, row + rows, row), row < rows),
    "below only": lambda row, rows: (row, row < rows),
    "above only": lambda row, rows: (row, row >= 0),
    "not the first": lambda row, rows: (row, (row > 0) & (row < rows)),
    "not the last": lambda row, rows: (row, (row >= 0) & (row < rows - 1)),
    "one more": lambda row, rows: (row, (row >= 0) & (row <= rows)),
    "one before": lambda row, rows: (row, (row >= -1) & (row < rows)),
}


def summed(own: Tensor) -> Tensor:
    return own.sum(0, keepdim=True).expand_as(own)


def largest(own: Tensor) -> Tensor:
    return own.amax(0, keepdim=True).expand_as(own)


def mean(own: Tensor) -> Tensor:
    return own.mean(0, keepdim=True).expand_as(own)


def of_own(own: Tensor) -> Tensor:
    return own


def of_first(own: Tensor) -> Tensor:
    return own[:1].expand_as(own)


def steps(
    logits: Tensor,
    targets: Tensor,
    *,
    shift: Over = largest,
    first: Callable[[Tensor, int, int], Tensor] = lambda rank, rows, ranks: rank * rows,
    mask: str = "right",
    parts: int = 1,
    total: Over = summed,
    target: Over = summed,
    shifted: bool = True,
) -> SimpleNamespace:
    """Return every intermediate result on all ranks; the first dimension is the rank.

    With shape (p, batch, length): largest, total and target (both after the shift), loss, and mine (whether the rank
    holds the target). With the shape of logits: exponentials, one (1 at the target), softmax, and gradient, of the sum
    of the losses.

    logits: (p, batch, length, V / p). parts: the number of parts into which a rank's rows are split again. shifted:
    read the target's logit after the shift; otherwise read it before, and subtract the shift from the combined value.
    """
    ranks, rows = logits.shape[0], max(logits.shape[-1] // parts, 1)
    s = SimpleNamespace(largest=shift(logits.amax(-1)), ranks=ranks, count=targets.numel())
    after = logits - s.largest[..., None]
    s.exponentials = after.exp()
    row, counts = MASKS[mask](targets - first(torch.arange(ranks)[:, None, None], rows, ranks), rows)
    row = row.clamp(0, rows - 1)[..., None]
    s.one = torch.zeros_like(after).scatter_(-1, row, counts.to(after.dtype)[..., None])
    s.mine = s.one.sum(-1)
    read = (after if shifted else logits).gather(-1, row)[..., 0]
    s.total = total(s.exponentials.sum(-1))
    s.target = target(torch.where(counts, read, 0)) - (0 if shifted else s.largest)
    s.loss = s.total.log() - s.target
    s.softmax = s.exponentials / s.total[..., None]
    s.gradient = s.softmax - s.one
    return s
