"""The pieces of a shard, and the results of common mistakes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

Found = tuple[int, list[tuple[int, int, int]]]
Mistakes = dict[str, Callable[..., Found]]


class At(NamedTuple):
    """The position in a loop over parameters: the shard's bounds, the parameter's begin in flat memory, both sizes."""

    first: int
    last: int
    start: int
    n: int
    size: int


def pieces_of(
    numels,
    ranks: int,
    rank: int,
    *,
    size=lambda total, ranks: -(-total // ranks),
    late=(0, 0),
    begin=lambda at: max(at.first - at.start, 0),
    end=lambda at: min(at.last - at.start, at.n),
    keep=lambda at, b, e: b < e,
    piece=lambda at, b, e: (b, e),
    move=lambda at, b, e: at.start + at.n,
    then=lambda pieces: pieces,
) -> Found:
    """Return the right answer, or with other settings a wrong one.

    size: shard size. late: elements by which a shard begins, and ends, too late. begin, end: the part of a parameter in
    the shard. keep: whether it is a piece. piece: the entry for it. move: where the next parameter begins. then:
    transforms the list.
    """
    part = size(sum(numels), ranks)
    first, last = rank * part + late[0], (rank + 1) * part + late[1]
    pieces, start = [], 0
    for number, n in enumerate(numels):
        at = At(first, last, start, n, part)
        b, e = begin(at), end(at)
        if keep(at, b, e):
            pieces.append((number, *piece(at, b, e)))
        start = move(at, b, e)
    return -(-sum(numels) // ranks), then(pieces)


def _each(numels, ranks, rank) -> Found:
    """Cut every parameter into `ranks` parts by itself."""
    pieces = []
    for number, n in enumerate(numels):
        _, own = pieces_of([n], ranks, rank)
        pieces += [(number, begin, end) for _, begin, end in own]
    return -(-sum(numels) // ranks), pieces


def _round_robin(numels, ranks, rank) -> Found:
    return -(-sum(numels) // ranks), [(k, 0, n) for k, n in enumerate(numels) if k % ranks == rank and n]


def _padding_first(numels, ranks, rank) -> Found:
    size, pieces = pieces_of([-sum(numels) % ranks, *numels], ranks, rank)
    return size, [(number - 1, begin, end) for number, begin, end in pieces if number]


_with = partial(partial, pieces_of)  # pieces_of, with other settings
MISTAKES: Mistakes = {
    "end counts from the start of flat memory instead of the start of the parameter": _with(
        piece=lambda at, b, e: (b, at.start + e)
    ),
    "a parameter that only touches the shard has no piece: use < instead of ≤": _with(keep=lambda at, b, e: b <= e),
    "begin counts from the start of flat memory, but should count from the start of the parameter": _with(
        begin=lambda at: max(at.first, at.start)
    ),
    "end counts from the start of flat memory, but should count from the start of the parameter": _with(
        end=lambda at: min(at.last, at.start + at.n)
    ),
    "the shard's end is ignored: everything after its begin is taken": _with(end=lambda at: at.n),
    "the shard's begin is ignored: everything before its end is taken": _with(begin=lambda at: 0),
    "the first parameter begins at position 0": _with(late=(-1, -1)),
    "a piece ends at the shard's end, not after as many elements as a shard has": _with(
        end=lambda at: min(at.size, at.n)
    ),
    "neither end is limited to the parameter: use max(…, 0) and min(…, numel)": _with(
        begin=lambda at: at.first - at.start, end=lambda at: at.last - at.start
    ),
    "begin may be negative: use max(…, 0)": _with(begin=lambda at: at.first - at.start),
    "end may exceed the parameter: use min(…, numel)": _with(end=lambda at: at.last - at.start),
    "start is never advanced, so every parameter begins at 0": _with(move=lambda at, b, e: at.start),
    "the next parameter begins after this one, not after its piece": _with(move=lambda at, b, e: at.start + e - b),
    "advance start even past a parameter that has no piece": _with(move=lambda at, b, e: at.start + at.n * (b < e)),
    "a parameter begins at the sum of all sizes before it": _with(move=lambda at, b, e: at.n),
    "the loop ends at the first parameter without a piece, but later ones may have pieces": _with(
        then=lambda pieces: [piece for i, piece in enumerate(pieces) if piece[0] == i]
    ),
    "number the parameters from 0": _with(then=lambda pieces: [(k + 1, b, e) for k, b, e in pieces]),
    "the loop stops at the first piece, but a shard may hold pieces of several parameters": _with(
        then=lambda pieces: pieces[:1]
    ),
    "list the pieces in the order of the parameters, not in reverse": _with(then=lambda pieces: pieces[::-1]),
    "write a piece as (number, begin, end)": _with(then=lambda pieces: [(b, e, k) for k, b, e in pieces]),
    "end is exclusive, but this is the last element of the piece": _with(piece=lambda at, b, e: (b, e - 1)),
    "the third entry is where a piece ends, not its number of elements": _with(piece=lambda at, b, e: (b, e - b)),
    "begin and end count from the start of flat memory, but should count from the start of the parameter": _with(
        piece=lambda at, b, e: (at.start + b, at.start + e)
    ),
    "begin and end count from the start of the shard, but should count from the start of the parameter": _with(
        piece=lambda at, b, e: (at.start + b - at.first, at.start + e - at.first)
    ),
    "a parameter that extends into the shard is taken whole": _with(piece=lambda at, b, e: (0, at.n)),
    "a cut parameter's piece begins one element late": _with(piece=lambda at, b, e: (b + (b > 0), e)),
    "a cut parameter's piece ends one element early": _with(piece=lambda at, b, e: (b, e - (e < at.n))),
    "a cut parameter's piece ends one element late": _with(piece=lambda at, b, e: (b, e + (e < at.n))),
    "a parameter that begins in an earlier shard is left out": _with(keep=lambda at, b, e: 0 == b < e),
    "a parameter that begins before the shard and ends after it is left out": _with(
        keep=lambda at, b, e: b < e and (b == 0 or e == at.n)
    ),
    "only parameters that fit entirely in the shard are taken": _with(keep=lambda at, b, e: 0 == b < e == at.n),
    "the list contains pieces without elements": _with(keep=lambda at, b, e: True),
    "the shard begins one element late": _with(late=(1, 0)),
    "the shard begins one element early": _with(late=(-1, 0)),
    "the shard ends one element late": _with(late=(0, 1)),
    "the shard ends one element early": _with(late=(0, -1)),
    "the shard size is rounded down": _with(size=lambda total, ranks: total // ranks),
    "this is the shard of the previous rank: rank 0 owns the first": lambda n, s, r: pieces_of(n, s, r - 1),
    "this is the shard of the next rank: ranks count from 0": lambda n, s, r: pieces_of(n, s, r + 1),
    "the ranks are in reverse order: rank 0 owns the first shard": lambda n, s, r: pieces_of(n, s, s - 1 - r),
    "padding counts as elements of the last parameter": lambda n, s, r: pieces_of([*n[:-1], n[-1] + -sum(n) % s], s, r),
    "padding belongs to no parameter, but here it is a separate piece": lambda n, s, r: pieces_of(
        [*n, -sum(n) % s], s, r
    ),
    "the padding is in front, but belongs after the last parameter": _padding_first,
    "every parameter is cut separately, but flat memory should be cut as a whole": _each,
    "whole parameters are dealt out in turn, but flat memory should be cut": _round_robin,
}

SIZES: dict[str, Callable[..., int]] = {
    "// rounds down, so the remainder belongs to no shard": lambda n, s, r: sum(n) // s,
    "a shard is one element too long if the ranks divide the elements: add one only for a remainder": (
        lambda n, s, r: sum(n) // s + 1
    ),
    "this is all of flat memory with padding, but a shard is one part of it": lambda n, s, r: -(-sum(n) // s) * s,
    "this is all of flat memory, but a shard is one part of it": lambda n, s, r: sum(n),
    "the last shard is shorter, but padding should make all shards equal": lambda n, s, r: max(
        0, min(-(-sum(n) // s), sum(n) - r * -(-sum(n) // s))
    ),
    "round() with + 0.5 gives one too many if the ranks divide the elements": lambda n, s, r: round(sum(n) / s + 0.5),
    "+ 0.999 rounds up correctly only on fewer than a thousand ranks": lambda n, s, r: int(sum(n) / s + 0.999),
    "this is the number of pieces": lambda n, s, r: len(pieces_of(n, s, r)[1]),
    "each parameter is padded separately, but only the last one is followed by padding": (
        lambda n, s, r: sum(-(-k // s) for k in n)
    ),
    "this divides the number of parameters, but the elements should be divided": lambda n, s, r: -(-len(n) // s),
    "this divides the largest parameter": lambda n, s, r: -(-max(n) // s),
}
