"""The means that common mistakes give on each rank in exercise 9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates

Gradients = Sequence[Tensor]
ALONE = "nothing is added up; all_reduce returns the sum and does not change its argument"
TWICE = "the rank's own gradients are counted twice; the sum already contains them"
BY_RANK = "it divides by dp_group.rank, which differs on every rank; divide by dp_group.size"
FIRST = "all ranks return rank 0's gradients; a broadcast adds nothing up"
LARGEST = "it takes the largest gradient, not the sum; all_reduce adds up unless you pass another op"
MIXED = "the gradients are joined in one order and split in another"
TURNED = "matrices are transposed; a part of the vector holds the gradient row by row"
ELEMENTS = "mean() averages over the elements; average over the ranks"
MEMORY = "the elements are in memory order; reshape reads row by row, whatever the strides are"
SQUEEZED = "squeeze drops dimensions of size 1, but they belong to a gradient's shape"
# For one gradient: functions of (its values on all ranks of the group, stacked; the rank's index; dp_size; mp_size).
OF_ONE: tuple[tuple[str, Callable[[Tensor, int, int, int], Tensor]], ...] = (
    (
        "it is the sum, not the mean; the division by dp_group.size is missing, or its result is not used",
        lambda s, i, d, p: s.sum(0),
    ),
    ("it divides by the number of ranks in the grid; divide by dp_group.size", lambda s, i, d, p: s.sum(0) / (d * p)),
    ("it divides by the number of ranks of a model; divide by dp_group.size", lambda s, i, d, p: s.sum(0) / p),
    ("it divides by the number of other ranks; divide by dp_group.size", lambda s, i, d, p: s.sum(0) / (d - 1)),
    ("it divides by dp_group.size twice", lambda s, i, d, p: s.sum(0) / d**2),
    *((f"it divides by {n}, whatever dp_group.size is", lambda s, i, d, p, n=n: s.sum(0) / n) for n in (2, 3, 4, 8)),
    (
        "it divides by a gradient's number of elements; average over the ranks",
        lambda s, i, d, p: s.sum(0) / max(1, s[0].numel()),
    ),
    *((BY_RANK, lambda s, i, d, p, n=n: s.sum(0) / (i + n)) for n in (0, 1)),
    ("// rounds down to a whole number; use /", lambda s, i, d, p: s.sum(0) // d),
    (ALONE, lambda s, i, d, p: s[i]),
    (ALONE, lambda s, i, d, p: s[i] / d),
    *((TWICE, lambda s, i, d, p, n=n: (s.sum(0) + s[i]) / (1, d, d + 1)[n]) for n in range(3)),
    (FIRST, lambda s, i, d, p: s[0]),
    (FIRST, lambda s, i, d, p: s[0] / d),
    ("only rank 0 divides; every rank has to divide its sum", lambda s, i, d, p: s.sum(0) if i else s.mean(0)),
    ("it multiplies by dp_group.size; divide the sum by it", lambda s, i, d, p: s.sum(0) * d),
    (LARGEST, lambda s, i, d, p: s.amax(0)),
    (LARGEST, lambda s, i, d, p: s.amax(0) / d),
    ("every mean is 0; nothing is written into the returned tensors", lambda s, i, d, p: 0 * s[0]),
)
# For all gradients of a rank: functions of (the means, the gradients of all ranks of the group, the rank's index).
OF_ALL: tuple[tuple[str, Callable[[Gradients, Sequence[Gradients], int], Gradients]], ...] = (
    (
        "it divides by the number of all elements; divide by dp_group.size",
        lambda m, g, i: [len(g) * x / _vector(m).numel() for x in m],
    ),
    (
        "it divides by the number of gradients; divide by dp_group.size",
        lambda m, g, i: [len(g) * x / len(m) for x in m],
    ),
    (ELEMENTS, lambda m, g, i: [torch.full_like(x, _vector(m).mean()) for x in m]),
    (ELEMENTS, lambda m, g, i: [torch.full_like(x, len(g) * _vector(m).mean()) for x in m]),
    ("only the first gradient is averaged; the others are this rank's own", lambda m, g, i: [m[0], *g[i][1:]]),
    (MIXED, lambda m, g, i: _cut(m[::-1], m)),
    (MIXED, lambda m, g, i: _cut(sorted(m, key=torch.Tensor.numel), m)),
    ("the means are in the reverse order of the gradients", lambda m, g, i: m[::-1]),
    (TURNED, lambda m, g, i: [x.reshape(x.shape[::-1]).mT if x.ndim == 2 else x for x in m]),
    (TURNED, lambda m, g, i: [x.permute(tuple(reversed(range(x.ndim)))).reshape(x.shape) for x in m]),
    ("the two dimensions of matrices are swapped", lambda m, g, i: [x.mT if x.ndim == 2 else x for x in m]),
    (
        "every part starts at element 0 of the vector",
        lambda m, g, i: [_vector(m)[: x.numel()].reshape(x.shape) for x in m],
    ),
    (MEMORY, lambda m, g, i: _from_memory(g)),
    (MEMORY, lambda m, g, i: [_laid(x, old) for x, old in zip(m, g[i], strict=True)]),
    (
        "the parts of the vector are still flat; give them the gradients' shapes with reshape(gradient.shape)",
        lambda m, g, i: [x.reshape(-1) for x in m],
    ),
    (SQUEEZED, lambda m, g, i: [x.squeeze() for x in m]),
    (SQUEEZED, lambda m, g, i: [x.squeeze() if x.numel() == 1 else x for x in m]),
)


def right(groups: Sequence[Sequence[Gradients]]) -> list[Gradients]:
    """Return each rank's means in float64. groups: for each data-parallel group, the gradients of its ranks."""
    return _on_each(groups, lambda s, *_: s.mean(0))


def causes(groups: Sequence[Sequence[Gradients]]) -> Candidates:
    means, mp_size = right(groups), len(groups)
    for sentence, function in OF_ONE:
        yield sentence, partial(_on_each, groups, function)
    for sentence, of_all in OF_ALL:
        ranks = ((own, groups[rank % mp_size], rank // mp_size) for rank, own in enumerate(means))
        yield sentence, [of_all(*one) for one in ranks]


def _on_each(groups: Sequence[Sequence[Gradients]], function: Callable) -> list[Gradients]:
    """Apply function(the group's gradients, the rank's index, dp_size, mp_size) to each gradient on each rank."""
    mp_size, dp_size = len(groups), len(groups[0])
    same = [[torch.stack(one).double() for one in zip(*group, strict=True)] for group in groups]
    ranks = range(mp_size * dp_size)
    return [[function(one, r // mp_size, dp_size, mp_size) for one in same[r % mp_size]] for r in ranks]


def _vector(tensors: Gradients) -> Tensor:
    return torch.cat([one.reshape(-1) for one in tensors])


def _cut(order: Gradients, shapes: Gradients) -> Gradients:
    """Join the tensors of `order` into a vector, and split it into tensors with the shapes of `shapes`."""
    parts = _vector(order).split([one.numel() for one in shapes])
    return [part.reshape(one.shape) for part, one in zip(parts, shapes, strict=True)]


def _by_stride(tensor: Tensor) -> list[int]:
    """Return the tensor's dimensions in memory order."""
    return sorted(range(tensor.ndim), key=tensor.stride, reverse=True)


def _from_memory(group: Sequence[Gradients]) -> Gradients:
    """Return the means of vectors that hold each rank's elements in memory order."""
    vectors = [[one.double().permute(_by_stride(one)).reshape(-1) for one in own] for own in group]
    means = [sum(same) / len(group) for same in zip(*vectors, strict=True)]
    return [mean.reshape(old.shape) for mean, old in zip(means, group[0], strict=True)]


def _laid(mean: Tensor, old: Tensor) -> Tensor:
    """Write the mean's elements, read row by row, into the gradient's memory layout."""
    order = _by_stride(old)
    back = [order.index(axis) for axis in range(old.ndim)]
    return mean.reshape([old.shape[axis] for axis in order]).permute(back)
