"""The pieces of a shard, and what common mistakes make of them."""

from __future__ import annotations

from collections.abc import Callable

Found = tuple[int, list[tuple[int, int, int]]]


def pieces_of(numels, ranks: int, rank: int, *, first: int | None = None, last: int | None = None,
              size: int | None = None, low: int = 0, high: int = 0, empty: bool = False) -> Found:  # fmt: skip
    """first, last: the shard's bounds, if not those of equal shards of `size`; low, high: added to each piece's begin
    and end inside a tensor; empty: pieces without elements stay."""
    size = -(-sum(numels) // ranks) if size is None else size
    first = rank * size if first is None else first
    last = first + size if last is None else last
    pieces, start = [], 0
    for number, n in enumerate(numels):
        begin, end = max(first - start, 0), min(last - start, n)
        if begin < end or empty:
            pieces.append((number, begin + low * (begin > 0), end + high * (end < n)))
        start += n
    return -(-sum(numels) // ranks), pieces


def _each_piece(change: Callable[..., tuple[int, int] | None]) -> Callable[..., Found]:
    """Every piece's (begin, end) as `change` has it, of its bounds, the parameter's elements, and where in flat memory
    the parameter and the shard begin; None leaves the piece out."""

    def made(numels, ranks, rank):
        size, pieces = pieces_of(numels, ranks, rank)
        changed = [(k, change(b, e, numels[k], sum(numels[:k]), rank * size)) for k, b, e in pieces]
        return size, [(k, *bounds) for k, bounds in changed if bounds]

    return made


def _padded(numels, ranks, rank) -> Found:
    """The last parameter takes the padding as well."""
    size = -(-sum(numels) // ranks)
    more = [*numels[:-1], numels[-1] + size * ranks - sum(numels)]
    return pieces_of(more, ranks, rank)


def _each(numels, ranks, rank) -> Found:
    """Every parameter cut into as many parts by itself."""
    pieces = []
    for number, n in enumerate(numels):
        part = -(-n // ranks)
        begin, end = min(rank * part, n), min((rank + 1) * part, n)
        pieces += [(number, begin, end)] * (begin < end)
    return -(-sum(numels) // ranks), pieces


def _round_robin(numels, ranks, rank) -> Found:
    return -(-sum(numels) // ranks), [(k, 0, n) for k, n in enumerate(numels) if k % ranks == rank and n]


def _bounds(**change: int) -> Callable[..., Found]:
    def made(numels, ranks, rank):
        size = -(-sum(numels) // ranks)
        bounds = {"first": rank * size, "last": (rank + 1) * size}
        return pieces_of(numels, ranks, rank, **{name: at + change.get(name, 0) for name, at in bounds.items()})

    return made


def _walked(
    begin=lambda first, start, size: max(first - start, 0),
    end=lambda last, start, n, size: min(last - start, n),
    move=lambda start, n, b, e: start + n,
    after=lambda pieces: pieces,
) -> Callable[..., Found]:
    """A walk over the parameters in which one line is another."""

    def made(numels, ranks, rank):
        size, start, pieces = -(-sum(numels) // ranks), 0, []
        for number, n in enumerate(numels):
            b, e = begin(rank * size, start, size), end((rank + 1) * size, start, n, size)
            pieces += [(number, b, e)] * (b < e)
            start = move(start, n, b, e)
        return size, after(pieces)

    return made


def _touching(numels, ranks, rank) -> Found:
    """Pieces without elements, too, where a parameter ends as the shard begins, or the other way round."""
    size = -(-sum(numels) // ranks)
    first, start, pieces = rank * size, 0, []
    for number, n in enumerate(numels):
        begin, end = max(first, start), min(first + size, start + n)
        pieces += [(number, begin - start, end - start)] * (begin <= end)
        start += n
    return size, pieces


def _until_none(numels, ranks, rank) -> Found:
    size, pieces = pieces_of(numels, ranks, rank)
    return size, [p for i, p in enumerate(pieces) if p[0] == i]


def _padding_piece(numels, ranks, rank) -> Found:
    size, pieces = pieces_of([*numels, -sum(numels) % ranks], ranks, rank)
    return size, pieces


def _padding_first(numels, ranks, rank) -> Found:
    size, pieces = pieces_of([-sum(numels) % ranks, *numels], ranks, rank)
    return size, [(number - 1, begin, end) for number, begin, end in pieces if number]


MISTAKES: dict[str, Callable[..., Found]] = {
    "a piece ends at an element of the parameter; this counts from the start of flat memory": _each_piece(
        lambda b, e, n, start, first: (b, start + e)
    ),
    "where a parameter and the shard only touch there is no piece: < and not ≤": _touching,
    "begin counts from the start of flat memory; it is an element of the parameter": _walked(
        begin=lambda first, start, size: max(first, start)
    ),
    "end counts from the start of flat memory; it is an element of the parameter": _walked(
        end=lambda last, start, n, size: min(last, start + n)
    ),
    "the shard's end is forgotten: all behind its begin is taken": _walked(end=lambda last, start, n, size: n),
    "the first parameter begins at 0": _walked(
        begin=lambda first, start, size: max(first - start - 1, 0),
        end=lambda last, start, n, size: min(last - start - 1, n),
    ),
    "a piece ends where the shard ends, not where it is as long as a shard": _walked(
        end=lambda last, start, n, size: min(size, n)
    ),
    "neither end is held within the parameter: max(…, 0) and min(…, numel)": _walked(
        begin=lambda first, start, size: first - start, end=lambda last, start, n, size: last - start
    ),
    "begin may lie before the parameter: max(…, 0)": _walked(begin=lambda first, start, size: first - start),
    "end may lie behind the parameter: min(…, numel)": _walked(end=lambda last, start, n, size: last - start),
    "start is not moved on: every parameter begins at 0": _walked(move=lambda start, n, b, e: start),
    "the first parameter without a piece ends the loop; later ones may have some": _until_none,
    "padding belongs to no parameter; here it is a piece by itself": _padding_piece,
    "the padding stands in front; it belongs behind the last parameter": _padding_first,
    "the next parameter begins behind this one, not behind its piece": _walked(
        move=lambda start, n, b, e: start + e - b
    ),
    "the next parameter begins behind this one, also where nothing of it is taken": _walked(
        move=lambda start, n, b, e: start + n * (b < e)
    ),
    "where a parameter begins is the sum of all before it": _walked(move=lambda start, n, b, e: n),
    "parameters are numbered from 0": _walked(after=lambda pieces: [(k + 1, b, e) for k, b, e in pieces]),
    "a shard may hold pieces of several parameters; this stops at the first": _walked(after=lambda pieces: pieces[:1]),
    "the pieces are in the order of the parameters, not in reverse": _walked(after=lambda pieces: pieces[::-1]),
    "the order in a piece is (number, begin, end)": _walked(after=lambda pieces: [(b, e, k) for k, b, e in pieces]),
    "the shard is that of the rank before: rank 0 has the first": lambda n, s, r: pieces_of(n, s, r - 1),
    "a parameter that begins before the shard and ends behind it is left out": _each_piece(
        lambda b, e, n, *_: (b, e) if b == 0 or e == n else None
    ),
    "a piece's end is the first element that is not in it; this is the last one that is": _each_piece(
        lambda b, e, n, start, first: (b, e - 1)
    ),
    "the third is where a piece ends, not how many elements it has": _each_piece(lambda b, e, *_: (b, e - b)),
    "begin and end count from the start of flat memory; they are elements of the parameter": _each_piece(
        lambda b, e, n, start, first: (start + b, start + e)
    ),
    "begin and end count from the start of the shard; they are elements of the parameter": _each_piece(
        lambda b, e, n, start, first: (start + b - first, start + e - first)
    ),
    "a parameter that reaches into the shard is taken whole": _each_piece(lambda b, e, n, *_: (0, n)),
    "a parameter that began in an earlier shard is left out": _each_piece(lambda b, e, *_: (b, e) if b == 0 else None),
    "only parameters that lie in the shard as a whole are taken": _each_piece(
        lambda b, e, n, *_: (b, e) if (b, e) == (0, n) else None
    ),
    "padding is counted as elements of the last parameter": _padded,
    "every parameter is cut by itself; it is the flat memory that is cut": _each,
    "whole parameters are dealt out in turn; it is the flat memory that is cut": _round_robin,
    "pieces without elements are in the list": lambda *a: pieces_of(*a, empty=True),
    "the shard begins one element late": _bounds(first=1),
    "the shard begins one element early": _bounds(first=-1),
    "the shard ends one element late": _bounds(last=1),
    "the shard ends one element early": _bounds(last=-1),
    "the shard's begin is forgotten: all that lies before its end is taken": lambda n, s, r: (
        pieces_of(n, s, r, first=0, last=(r + 1) * -(-sum(n) // s))
    ),
    "the shard is the next rank's: ranks count from 0": lambda n, s, r: pieces_of(n, s, r + 1),
    "a piece begins one element late where the parameter is cut": lambda *a: pieces_of(*a, low=1),
    "a piece ends one element early where the parameter is cut": lambda *a: pieces_of(*a, high=-1),
    "a piece ends one element late where the parameter is cut": lambda *a: pieces_of(*a, high=1),
    "the shards are cut in the size that rounds down": lambda n, s, r: pieces_of(n, s, r, size=sum(n) // s),
    "the ranks are in reverse order: rank 0 has the first shard": lambda n, s, r: pieces_of(n, s, s - 1 - r),
}  # fmt: skip

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
    "this is how many pieces there are": lambda n, s, r: len(pieces_of(n, s, r)[1]),
    "each parameter is padded for itself; they lie one behind the other, and padding is behind the last": (
        lambda n, s, r: sum(-(-k // s) for k in n)
    ),
    "this divides the number of parameters; it is elements that are divided": lambda n, s, r: -(-len(n) // s),
    "the largest parameter, divided": lambda n, s, r: -(-max(n) // s),
}
