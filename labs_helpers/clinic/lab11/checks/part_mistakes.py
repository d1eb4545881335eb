"""Divide a step's time with one mistake each, as answers to exercise 1 of lab 11 do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from labs_helpers.measure.step_parts import merged, without

COMPUTING = ("forward", "backward", "optimizer")
PARTS = (*COMPUTING, "data", "communication")
Span = tuple[float, float]
Spans = dict[str, list[Span]]
Listed = Callable[[Sequence[Span], float], list[Span]]  # (spans of a part, length of the step) → those that count
Mistakes = Iterator[tuple[str, float]]


def clipped(spans: Sequence[Span], length: float) -> list[Span]:
    """Return the parts of the spans that lie inside the step."""
    return [(start, min(stop, length)) for start, stop in spans if start < length]


def union(spans: Sequence[Span], length: float) -> list[Span]:
    return merged(clipped(spans, length))


def _joined(spans: Sequence[Span], stop_of: Callable[[float, float], float]) -> list[Span]:
    """Join each span with the one before it if they overlap."""
    found: list[Span] = []
    for start, stop in spans:
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], stop_of(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found


def _hull(spans: Sequence[Span], length: float) -> list[Span]:
    inside = clipped(spans, length)
    return [(min(inside)[0], max(stop for _, stop in inside))] if inside else []


PLAIN: tuple[tuple[str, Listed], ...] = (
    ("spans that overlap are added up; a moment counts once", clipped),
    ("spans are added up as they are; count each moment once, and none after the end of the step",
     lambda spans, length: list(spans)),
)  # fmt: skip
LISTS: tuple[tuple[str, Listed], ...] = (
    *PLAIN,
    ("a span also counts after the end of the step", lambda spans, length: merged(spans)),
    ("a span that ends after the step is left out; the part inside the step counts",
     lambda spans, length: merged(span for span in spans if span[1] <= length)),
    ("a span that begins after the end of the step counts negative time",
     lambda spans, length: [*union(spans, length), *((start, length) for start, _ in merged(spans) if start > length)]),
    ("the time from a part's first beginning to its last end also contains gaps", _hull),
    ("spans are joined in the order of the list; sort them by their beginning first",
     lambda spans, length: _joined(clipped(spans, length), max)),
    ("where a span contains the next one, joining them must keep the later end: max(stop, …)",
     lambda spans, length: _joined(sorted(clipped(spans, length)), lambda stop, later: later)),
)  # fmt: skip


PLAIN_SUM = "whole spans are added up; count each moment once, and none that belongs to another part"
TWICE = "overlaps are subtracted one by one; a moment in two of them is subtracted twice"
ROUNDED = "the ms are rounded; return them as they are"
WHOLE = "only whole ms are counted, but spans begin and end between them"
EDGES = "pieces at the edge of a span are missing: it contains a piece that begins or ends where it does; use <="
MISSED: tuple[Callable[[Span, Span], bool], ...] = (  # (piece, span) → whether < in place of <= misses the piece
    lambda piece, span: piece[0] == span[0],
    lambda piece, span: piece[1] == span[1],
    lambda piece, span: piece[0] == span[0] or piece[1] == span[1],
)


def total(spans: Sequence[Span]) -> float:
    return float(sum(stop - start for start, stop in spans))


def _of(spans: Spans, length: float, *parts: str) -> list[Span]:
    """Return the moments of these parts together."""
    return union([span for part in parts for span in spans.get(part, [])], length)


def _exposed(spans: Sequence[Span], taken: list[Span]) -> float:
    """Return the ms of each span outside the moments that other parts have taken."""
    return sum(total(without([span], taken)) if span[0] < span[1] else total([span]) for span in spans)


def _added(listed: Listed, spans: Spans, length: float, parts: Sequence[str], part: str) -> float:
    """Return by how many ms a part makes the list of others longer."""
    others = [span for one in parts for span in spans.get(one, [])]
    return total(listed([*others, *spans.get(part, [])], length)) - total(listed(others, length))


def _apart(spans: list[Span], others: list[Span]) -> list[Span]:
    """Return the spans that overlap with none of the others."""
    return [one for one in spans if not any(one[0] < stop and start < one[1] for start, stop in others)]


def _common(spans: list[Span], others: list[Span]) -> float:
    return total(spans) - total(without(spans, others))


def _pairwise(spans: Spans, length: float, part: str, *others: str) -> float:
    """Return the ms that each span of a part and each span of others have in common, added up."""
    pairs = [
        (one, span) for one in clipped(spans.get(part, []), length) for other in others for span in spans.get(other, [])
    ]
    return sum(max(0.0, min(one[1], span[1]) - max(one[0], span[0])) for one, span in pairs)


def _by_pieces(own: Sequence[Span], spans: Spans, length: float, missed: Callable[[Span, Span], bool]) -> float:
    """Return the ms of the pieces between all beginnings and ends that one of a part's own spans contains."""
    moments = {0.0, length, *(min(moment, length) for listed in spans.values() for span in listed for moment in span)}
    return total(
        [
            piece
            for piece in pairwise(sorted(moments))
            if any(start <= piece[0] and piece[1] <= stop and not missed(piece, (start, stop)) for start, stop in own)
        ]
    )


def right(spans: Spans, length: float) -> dict[str, float]:
    computing = _of(spans, length, *COMPUTING)
    ms = {part: total(_of(spans, length, part)) for part in COMPUTING}
    ms["data"] = total(without(_of(spans, length, "data"), computing))
    ms["communication"] = total(without(_of(spans, length, "communication"), _of(spans, length, *COMPUTING, "data")))
    return ms | {"idle": length - sum(ms.values())}


def computing(part: str) -> Callable[[Spans, float], Mistakes]:
    """Return the function that yields pairs of a sentence and the ms of a computing part."""

    def mistakes(spans: Spans, length: float) -> Mistakes:
        own = spans.get(part, [])
        for sentence, listed in LISTS:
            yield sentence, total(listed(own, length))
        for other in ("data", "communication"):
            ms = total(without(_of(spans, length, part), _of(spans, length, other)))
            yield f"where {other} overlaps with a computing part, the moment belongs to the computing part", ms
        ms = total(without(_of(spans, length, part), _of(spans, length, "data", "communication")))
        yield "where another part overlaps with a computing part, the moment belongs to the computing part", ms
        for whole in (1, 100):
            share = whole * total(_of(spans, length, part)) / length
            yield "this is the part's share of the step, not its ms", share
        yield ROUNDED, round(total(_of(spans, length, part)))
        yield WHOLE, float(sum(any(start <= ms < stop for start, stop in own) for ms in range(int(length))))
        for missed in MISSED:
            yield EDGES, _by_pieces(own, spans, length, missed)

    return mistakes


def data(spans: Spans, length: float) -> Mistakes:
    """Yield pairs of a sentence and the ms of data."""
    own, busy = _of(spans, length, "data"), _of(spans, length, *COMPUTING)
    for sentence, listed in LISTS:
        yield sentence, _exposed(listed(spans.get("data", []), length), busy)
    for sentence, listed in LISTS[len(PLAIN) :]:
        yield sentence, _added(listed, spans, length, COMPUTING, "data")
    yield "data also counts while the step computes; there, the moment belongs to the computing part", total(own)
    for _, listed in PLAIN:
        yield PLAIN_SUM, total(listed(spans.get("data", []), length))
    first = "where data and communication overlap, the moment belongs to data"
    yield first, total(without(own, _of(spans, length, *COMPUTING, "communication")))
    yield TWICE, total(own) - _pairwise(spans, length, "data", *COMPUTING)
    yield ROUNDED, round(total(without(own, busy)))
    yield "a span that overlaps with computing is left out; the rest of the span counts", total(_apart(own, busy))
    yield from _only_one(own, spans, length)


def _only_one(own: list[Span], spans: Spans, length: float, *others: str) -> Mistakes:
    for part in COMPUTING:
        said = f"of the computing parts, only {part} takes moments from it; all three do"
        yield said, total(without(own, _of(spans, length, part, *others)))


def communication(spans: Spans, length: float) -> Mistakes:
    """Yield pairs of a sentence and the ms of communication."""
    own, busy = _of(spans, length, "communication"), _of(spans, length, *COMPUTING)
    loading = _of(spans, length, "data")
    both = merged(busy + loading)
    for sentence, listed in LISTS:
        yield sentence, _exposed(listed(spans.get("communication", []), length), both)
    for sentence, listed in LISTS[len(PLAIN) :]:
        yield sentence, _added(listed, spans, length, (*COMPUTING, "data"), "communication")
    yield "communication counts as a whole; it counts only while the step neither computes nor loads data", total(own)
    for _, listed in PLAIN:
        yield PLAIN_SUM, total(listed(spans.get("communication", []), length))
    yield "communication also counts while data is loaded", total(without(own, busy))
    yield "communication also counts while the step computes", total(without(own, loading))
    yield TWICE, total(own) - _common(own, busy) - _common(own, loading)
    yield TWICE, total(own) - _pairwise(spans, length, "communication", *COMPUTING, "data")
    yield ROUNDED, round(total(without(own, both)))
    yield "a span that overlaps with another part is left out; the rest of it counts", total(_apart(own, both))
    yield from _only_one(own, spans, length, "data")


def idle(spans: Spans, length: float) -> Mistakes:
    """Yield pairs of a sentence and the ms of idle."""
    busy = _of(spans, length, *PARTS)
    summed = length - sum(total(_of(spans, length, part)) for part in PARTS)
    overlaps = "moments with two parts are subtracted twice from the step; subtract the five numbers that you return"
    yield overlaps, summed
    yield overlaps, max(0.0, summed)
    last = max((stop for _, stop in busy), default=0.0)
    yield "only the time after the last span is idle here; gaps between spans are idle, too", length - last
    yield "the time after the last span is missing: it is idle until the step ends", last - total(busy)
    first = min((start for start, _ in busy), default=length)
    yield "the time before the first span is missing: it is idle, too", length - total(busy) - first
    waits = "this is the time in which nothing computes; it is idle only if no data and no communication take place"
    yield waits, length - total(_of(spans, length, *COMPUTING))
    yield "nothing is idle here: a moment without any part is", 0.0
