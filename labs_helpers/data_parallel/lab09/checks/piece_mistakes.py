"""The pieces of a shard, and what common mistakes make of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

Found = tuple[int, list[tuple[int, int, int]]]
Mistakes = dict[str, Callable[..., Found]]


class At(NamedTuple):
    """Where the loop over parameters is: the shard's bounds, the parameter's begin in flat memory, the elements of the
    parameter and of a shard."""

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
    """The right answer, and with other settings a wrong one.

    size: of the shards that are cut. late: by how many elements a shard begins, and ends, too late. begin, end: of what
    lies in the shard. keep: whether it is a piece. piece: what is written down of it. move: where the next parameter
    begins. then: what becomes of the list.
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
    """Every parameter cut into as many parts by itself."""
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
    "a piece ends at an element of the parameter; this counts from the start of flat memory": _with(
        piece=lambda at, b, e: (b, at.start + e)
    ),
    "where a parameter and the shard only touch there is no piece: < and not ≤": _with(keep=lambda at, b, e: b <= e),
    "begin counts from the start of flat memory; it is an element of the parameter": _with(
        begin=lambda at: max(at.first, at.start)
    ),
    "end counts from the start of flat memory; it is an element of the parameter": _with(
        end=lambda at: min(at.last, at.start + at.n)
    ),
    "the shard's end is forgotten: all behind its begin is taken": _with(end=lambda at: at.n),
    "the shard's begin is forgotten: all that lies before its end is taken": _with(begin=lambda at: 0),
    "the first parameter begins at 0": _with(late=(-1, -1)),
    "a piece ends where the shard ends, not where it is as long as a shard": _with(end=lambda at: min(at.size, at.n)),
    "neither end is held within the parameter: max(…, 0) and min(…, numel)": _with(
        begin=lambda at: at.first - at.start, end=lambda at: at.last - at.start
    ),
    "begin may lie before the parameter: max(…, 0)": _with(begin=lambda at: at.first - at.start),
    "end may lie behind the parameter: min(…, numel)": _with(end=lambda at: at.last - at.start),
    "start is not moved on: every parameter begins at 0": _with(move=lambda at, b, e: at.start),
    "the next parameter begins behind this one, not behind its piece": _with(move=lambda at, b, e: at.start + e - b),
    "the next parameter begins behind this one, also where nothing of it is taken": _with(
        move=lambda at, b, e: at.start + at.n * (b < e)
    ),
    "where a parameter begins is the sum of all before it": _with(move=lambda at, b, e: at.n),
    "the first parameter without a piece ends the loop; later ones may have some": _with(
        then=lambda pieces: [piece for i, piece in enumerate(pieces) if piece[0] == i]
    ),
    "parameters are numbered from 0": _with(then=lambda pieces: [(k + 1, b, e) for k, b, e in pieces]),
    "a shard may hold pieces of several parameters; this stops at the first": _with(then=lambda pieces: pieces[:1]),
    "the pieces are in the order of the parameters, not in reverse": _with(then=lambda pieces: pieces[::-1]),
    "the order in a piece is (number, begin, end)": _with(then=lambda pieces: [(b, e, k) for k, b, e in pieces]),
    "a piece's end is the first element that is not in it; this is the last one that is": _with(
        piece=lambda at, b, e: (b, e - 1)
    ),
    "the third is where a piece ends, not how many elements it has": _with(piece=lambda at, b, e: (b, e - b)),
    "begin and end count from the start of flat memory; they are elements of the parameter": _with(
        piece=lambda at, b, e: (at.start + b, at.start + e)
    ),
    "begin and end count from the start of the shard; they are elements of the parameter": _with(
        piece=lambda at, b, e: (at.start + b - at.first, at.start + e - at.first)
    ),
    "a parameter that reaches into the shard is taken whole": _with(piece=lambda at, b, e: (0, at.n)),
    "a piece begins one element late where the parameter is cut": _with(piece=lambda at, b, e: (b + (b > 0), e)),
    "a piece ends one element early where the parameter is cut": _with(piece=lambda at, b, e: (b, e - (e < at.n))),
    "a piece ends one element late where the parameter is cut": _with(piece=lambda at, b, e: (b, e + (e < at.n))),
    "a parameter that began in an earlier shard is left out": _with(keep=lambda at, b, e: 0 == b < e),
    "a parameter that begins before the shard and ends behind it is left out": _with(
        keep=lambda at, b, e: b < e and (b == 0 or e == at.n)
    ),
    "only parameters that lie in the shard as a whole are taken": _with(keep=lambda at, b, e: 0 == b < e == at.n),
    "pieces without elements are in the list": _with(keep=lambda at, b, e: True),
    "the shard begins one element late": _with(late=(1, 0)),
    "the shard begins one element early": _with(late=(-1, 0)),
    "the shard ends one element late": _with(late=(0, 1)),
    "the shard ends one element early": _with(late=(0, -1)),
    "the shards are cut in the size that rounds down": _with(size=lambda total, ranks: total // ranks),
    "the shard is that of the rank before: rank 0 has the first": lambda n, s, r: pieces_of(n, s, r - 1),
    "the shard is the next rank's: ranks count from 0": lambda n, s, r: pieces_of(n, s, r + 1),
    "the ranks are in reverse order: rank 0 has the first shard": lambda n, s, r: pieces_of(n, s, s - 1 - r),
    "padding counts as elements of the last parameter": lambda n, s, r: pieces_of([*n[:-1], n[-1] + -sum(n) % s], s, r),
    "padding belongs to no parameter; here it is a piece by itself": lambda n, s, r: pieces_of([*n, -sum(n) % s], s, r),
    "the padding stands in front; it belongs behind the last parameter": _padding_first,
    "every parameter is cut by itself; it is the flat memory that is cut": _each,
    "whole parameters are dealt out in turn; it is the flat memory that is cut": _round_robin,
}

SIZES: dict[str, Callable[..., int]] = {
    "// rounds down, and what is left over has no shard": lambda n, s, r: sum(n) // s,
    "a shard too long where the ranks divide the elements: one more only if something is left over": (
        lambda n, s, r: sum(n) // s + 1
    ),
    "this is all of flat memory with its padding; a shard is one part of it": lambda n, s, r: -(-sum(n) // s) * s,
    "this is all of flat memory; a shard is one part of it": lambda n, s, r: sum(n),
    "the last shard is short; the padding makes all of them equal": lambda n, s, r: max(
        0, min(-(-sum(n) // s), sum(n) - r * -(-sum(n) // s))
    ),
    "round() and + 0.5 are one too many where the ranks divide the elements": lambda n, s, r: round(sum(n) / s + 0.5),
    "+ 0.999 rounds up on fewer than a thousand ranks alone": lambda n, s, r: int(sum(n) / s + 0.999),
    "this is how many pieces there are": lambda n, s, r: len(pieces_of(n, s, r)[1]),
    "each parameter is padded for itself; they lie one behind the other, and padding is behind the last": (
        lambda n, s, r: sum(-(-k // s) for k in n)
    ),
    "this divides the number of parameters; it is elements that are divided": lambda n, s, r: -(-len(n) // s),
    "the largest parameter, divided": lambda n, s, r: -(-max(n) // s),
}
