"""List the groups of a mesh with one mistake each, as answers to exercise 8 of lab 10 do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from math import prod

Groups = dict[str, list[list[int]]]


def lines(places, i: int) -> list[list[int]]:
    """Return the groups along axis i: the ranks that agree in all other coordinates."""
    found: dict[tuple, list[int]] = {}
    for rank, place in enumerate(places):
        found.setdefault((*place[:i], *place[i + 1 :]), []).append(rank)
    return list(found.values())


def _planes(places, i: int) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for rank, place in enumerate(places):
        found.setdefault(place[i], []).append(rank)
    return list(found.values())


def _blocks(places, i: int) -> list[list[int]]:
    size = 1 + max(place[i] for place in places)
    return [list(range(first, first + size)) for first in range(0, len(places), size)]


def _strides(places, i: int) -> list[list[int]]:
    """Return every n-th rank for n groups, which is right for the slowest axis."""
    count = len(places) // (1 + max(place[i] for place in places))
    return [list(range(first, len(places), count)) for first in range(count)]


def _strides_or_blocks(places, i: int) -> list[list[int]]:
    """Return the right groups of the fastest axis, and every n-th rank for the others."""
    return (_blocks if i == len(places[0]) - 1 else _strides)(places, i)


def _of_first_rank(places, i: int) -> list[list[int]]:
    return [group for group in lines(places, i) if 0 in group]


def _overlapping(places, i: int) -> list[list[int]]:
    """Return the group that begins at each rank, with the right distance between its ranks."""
    stride = prod(1 + max(place[j] for place in places) for j in range(i + 1, len(places[0])))
    size = 1 + max(place[i] for place in places)
    return [list(range(rank, rank + stride * size, stride)) for rank in range(len(places))]


def _per_rank(places, i: int) -> list[list[int]]:
    groups = lines(places, i)
    return [next(group for group in groups if rank in group) for rank in range(len(places))]


def rank_groups(
    sizes: Mapping[str, int],
    exposed: Mapping[str, float],
    order: Callable = lambda sizes, exposed: sorted(sizes, key=exposed.__getitem__),
    groups: Callable = lines,
) -> Groups:
    """Return the right groups; other settings than the defaults make mistakes. order: the axes, the slowest first."""
    axes = list(order(sizes, exposed))
    places = list(itertools.product(*(range(sizes[axis]) for axis in axes)))
    return {axis: sorted(groups(places, i)) for i, axis in enumerate(axes)}


def _flat(sizes, exposed):
    return {axis: sorted(itertools.chain(*groups)) for axis, groups in rank_groups(sizes, exposed).items()}


UNUSED = "the axes are in the order of `sizes`, and `exposed` is not used"
TOTAL = "the axes are ordered by exposed bytes times size; order them by the bytes alone"
ORDERS = (
    (
        "the axis with the most exposed bytes varies slowest: its ranks are the farthest apart",
        lambda sizes, exposed: sorted(sizes, key=exposed.get, reverse=True),
    ),
    (UNUSED, lambda sizes, exposed: list(sizes)),
    (UNUSED, lambda sizes, exposed: reversed(list(sizes))),
    ("the axes are ordered by size, not by exposed bytes", lambda sizes, exposed: sorted(sizes, key=sizes.get)),
    (
        "the axes are ordered by size, not by exposed bytes",
        lambda sizes, exposed: sorted(sizes, key=sizes.get, reverse=True),
    ),
    ("the axes are ordered by name, not by exposed bytes", lambda sizes, exposed: sorted(sizes)),
    ("the axes are ordered by name, not by exposed bytes", lambda sizes, exposed: sorted(sizes, reverse=True)),
    (TOTAL, lambda sizes, exposed: sorted(sizes, key=lambda axis: sizes[axis] * exposed[axis])),
)
GROUPS = (
    ("a group contains the ranks that share the coordinate of its axis; they must share all others", _planes),
    ("every group contains neighboring ranks; that is right only for the axis that varies fastest", _blocks),
    ("every group contains equally spaced ranks from all over the mesh, right only for the slowest axis", _strides),
    ("a middle axis has groups like the slowest one's: keep the slower coordinates fixed too", _strides_or_blocks),
    ("only the groups of rank 0 are there; every rank belongs to one group per axis", _of_first_rank),
    ("a group begins at every rank; each rank belongs to one group per axis", _overlapping),
    ("each group is there once per rank; list it once", _per_rank),
)  # fmt: skip
MISTAKES = [
    *((sentence, partial(rank_groups, order=order)) for sentence, order in ORDERS),
    *((sentence, partial(rank_groups, groups=groups)) for sentence, groups in GROUPS),
]
ERRORS = ((r"IndexError: tuple index", "a mesh may have more or fewer than three axes"),)
