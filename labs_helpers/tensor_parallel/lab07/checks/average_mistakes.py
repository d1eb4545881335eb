"""What common mistakes of lab 07's exercise 9 give: each rank's list of means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates

Gradients = Sequence[Tensor]
ALONE = "nothing is added up: all_reduce returns the sum, and leaves what it is given as it is"
TWICE = "the rank's own gradients are in it twice: the sum has them already"
BY_RANK = "a division by dp_group.rank, which is another number on each rank; dp_group.size is the same"
FIRST = "all have rank 0's gradients: a broadcast adds nothing up"
LARGEST = "the largest, not the sum: all_reduce adds up unless it is told otherwise"
MIXED = "the gradients' order is another in the vector than among the parts"
TURNED = "matrices are turned round: a part of the vector lies row by row"
ELEMENTS = "mean() goes over the elements; the mean that is asked for goes over the ranks"
MEMORY = "the elements' order is that in memory; reshape goes through rows, whatever the strides are"
SQUEEZED = "squeeze drops dimensions of size 1; they belong to a gradient's shape as all others do"
# Of one gradient: functions of (all ranks' of the group, stacked; the rank's place; dp_size; mp_size).
OF_ONE: tuple[tuple[str, Callable[[Tensor, int, int, int], Tensor]], ...] = (
    (
        "the sum, not the mean: a division by dp_group.size is missing, or what it returns is not used",
        lambda s, i, d, p: s.sum(0),
    ),
    ("a division by the number of ranks in the grid", lambda s, i, d, p: s.sum(0) / (d * p)),
    ("a division by the number of ranks of a model", lambda s, i, d, p: s.sum(0) / p),
    ("a division by the number of other ranks", lambda s, i, d, p: s.sum(0) / (d - 1)),
    ("a division by dp_group.size twice", lambda s, i, d, p: s.sum(0) / d**2),
    *((f"a division by {n}, whatever dp_group.size is", lambda s, i, d, p, n=n: s.sum(0) / n) for n in (2, 3, 4, 8)),
    (
        "a division by a gradient's number of elements; the mean goes over the ranks",
        lambda s, i, d, p: s.sum(0) / max(1, s[0].numel()),
    ),
    *((BY_RANK, lambda s, i, d, p, n=n: s.sum(0) / (i + n)) for n in (0, 1)),
    ("// rounds down to a whole number; / divides", lambda s, i, d, p: s.sum(0) // d),
    (ALONE, lambda s, i, d, p: s[i]),
    (ALONE, lambda s, i, d, p: s[i] / d),
    *((TWICE, lambda s, i, d, p, n=n: (s.sum(0) + s[i]) / (1, d, d + 1)[n]) for n in range(3)),
    (FIRST, lambda s, i, d, p: s[0]),
    (FIRST, lambda s, i, d, p: s[0] / d),
    ("only rank 0 divides; every rank has the sum", lambda s, i, d, p: s.sum(0) if i else s.mean(0)),
    ("the mean is multiplied by dp_group.size, not divided", lambda s, i, d, p: s.sum(0) * d),
    (LARGEST, lambda s, i, d, p: s.amax(0)),
    (LARGEST, lambda s, i, d, p: s.amax(0) / d),
    ("0 everywhere: what is returned is never filled", lambda s, i, d, p: 0 * s[0]),
)
# Of all gradients of a rank: functions of (the means, all ranks' gradients of the group, the rank's place).
OF_ALL: tuple[tuple[str, Callable[[Gradients, Sequence[Gradients], int], Gradients]], ...] = (
    ("a division by the number of all elements", lambda m, g, i: [len(g) * x / _vector(m).numel() for x in m]),
    ("a division by the number of gradients", lambda m, g, i: [len(g) * x / len(m) for x in m]),
    (ELEMENTS, lambda m, g, i: [torch.full_like(x, _vector(m).mean()) for x in m]),
    (ELEMENTS, lambda m, g, i: [torch.full_like(x, len(g) * _vector(m).mean()) for x in m]),
    ("the first gradient alone is averaged; the others are this rank's", lambda m, g, i: [m[0], *g[i][1:]]),
    (MIXED, lambda m, g, i: _cut(m[::-1], m)),
    (MIXED, lambda m, g, i: _cut(sorted(m, key=torch.Tensor.numel), m)),
    ("the means are in the reverse order of the gradients", lambda m, g, i: m[::-1]),
    (TURNED, lambda m, g, i: [x.reshape(x.shape[::-1]).mT if x.ndim == 2 else x for x in m]),
    (TURNED, lambda m, g, i: [x.permute(tuple(reversed(range(x.ndim)))).reshape(x.shape) for x in m]),
    ("the two dimensions of matrices are swapped", lambda m, g, i: [x.mT if x.ndim == 2 else x for x in m]),
    (
        "every part begins at element 0 of the vector",
        lambda m, g, i: [_vector(m)[: x.numel()].reshape(x.shape) for x in m],
    ),
    (MEMORY, lambda m, g, i: _from_memory(g)),
    (MEMORY, lambda m, g, i: [_laid(x, old) for x, old in zip(m, g[i], strict=True)]),
    (
        "the parts of the vector do not have the gradients' shapes yet: reshape(gradient.shape)",
        lambda m, g, i: [x.reshape(-1) for x in m],
    ),
    (SQUEEZED, lambda m, g, i: [x.squeeze() for x in m]),
    (SQUEEZED, lambda m, g, i: [x.squeeze() if x.numel() == 1 else x for x in m]),
)


def right(groups: Sequence[Sequence[Gradients]]) -> list[Gradients]:
    """Each rank's means, in float64. groups: of each data-parallel group its ranks' gradients."""
    return _on_each(groups, lambda s, *_: s.mean(0))


def causes(groups: Sequence[Sequence[Gradients]]) -> Candidates:
    means, mp_size = right(groups), len(groups)
    for sentence, function in OF_ONE:
        yield sentence, partial(_on_each, groups, function)
    for sentence, of_all in OF_ALL:
        ranks = ((own, groups[rank % mp_size], rank // mp_size) for rank, own in enumerate(means))
        yield sentence, [of_all(*one) for one in ranks]


def _on_each(groups: Sequence[Sequence[Gradients]], function: Callable) -> list[Gradients]:
    """function(the group's gradients, the rank's place, dp_size, mp_size) for each gradient, on each rank."""
    mp_size, dp_size = len(groups), len(groups[0])
    same = [[torch.stack(one).double() for one in zip(*group, strict=True)] for group in groups]
    ranks = range(mp_size * dp_size)
    return [[function(one, r // mp_size, dp_size, mp_size) for one in same[r % mp_size]] for r in ranks]


def _vector(tensors: Gradients) -> Tensor:
    return torch.cat([one.reshape(-1) for one in tensors])


def _cut(order: Gradients, shapes: Gradients) -> Gradients:
    """The vector of the tensors in `order`, cut into tensors shaped as `shapes`."""
    parts = _vector(order).split([one.numel() for one in shapes])
    return [part.reshape(one.shape) for part, one in zip(parts, shapes, strict=True)]


def _by_stride(tensor: Tensor) -> list[int]:
    """Its dimensions in the order in which they lie in memory."""
    return sorted(range(tensor.ndim), key=tensor.stride, reverse=True)


def _from_memory(group: Sequence[Gradients]) -> Gradients:
    """The means of vectors in which each rank's elements stand as in its memory."""
    vectors = [[one.double().permute(_by_stride(one)).reshape(-1) for one in own] for own in group]
    means = [sum(same) / len(group) for same in zip(*vectors, strict=True)]
    return [mean.reshape(old.shape) for mean, old in zip(means, group[0], strict=True)]


def _laid(mean: Tensor, old: Tensor) -> Tensor:
    """The mean's elements, row by row, laid into memory as the gradient's are."""
    order = _by_stride(old)
    back = [order.index(axis) for axis in range(old.ndim)]
    return mean.reshape([old.shape[axis] for axis in order]).permute(back)
