"""What common mistakes make of the times of a trace's parts."""

from __future__ import annotations

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01.checks.covered import Interval, added_up, covered, first_to_last, intervals
from labs_helpers.transformer.lab01.checks.part_costs import again, last, launched, owned, parts
from labs_helpers.transformer.lab01.checks.practice_traces import of


def us_causes(events: list[Event]) -> Candidates:
    given = owned(events)
    yield "pieces that run at the same time were added up: µs is the length of their union", parts(given, us=added_up)
    pauses = "the pauses between pieces are no work: µs is the time in which at least one runs"
    yield pauses, parts(given, us=first_to_last)
    yield "a part's dur is the CPU's time; the GPU's is asked for", parts([(part, [part]) for part, _ in given])
    starts = dict((id(piece), launch) for piece, launch in launched(events))
    launches = "a launch's dur is the CPU's time; the GPU's is asked for"
    yield launches, parts([(part, [starts[id(piece)] for piece in pieces]) for part, pieces in given], us=added_up)
    longest = "one piece's time is left of several"
    yield longest, parts(given, us=lambda pieces: max((piece["dur"] for piece in pieces), default=0.0))
    yield "µs are asked for, as the trace has them", parts(given, us=lambda pieces: covered(pieces) / 1e3)
    yield "µs are asked for, as the trace has them", parts(given, us=lambda pieces: covered(pieces) / 1e6)
    yield from again(given)


def span_causes(events: list[Event]) -> Candidates:
    given = owned(events)
    together = [
        (part, [e for other, pieces in given if other["name"] == part["name"] for e in pieces]) for part, _ in given
    ]
    between = "what comes between two times that a part stands there is not its own: span is added up for each of them"
    yield between, parts(last(together))
    for whose, other in (("the whole trace's", of(events)), ("that of all GPU work", of(events, *GPU_WORK))):
        yield (
            f"span is the part's own, not {whose}",
            {part["name"]: (0, 0.0, first_to_last(other)) for part, _ in given},
        )
    cpu = "span is on the GPU, from the first piece's start to the last one's end; a part's dur is the CPU's time"
    yield cpu, parts([(part, [part]) for part, _ in given])
    begins = "span begins with the first piece's start on the GPU, not with the part or its launch on the CPU"
    yield begins, parts([(part, [part, *pieces] if pieces else []) for part, pieces in given], span=_from_the_first)
    starts = {id(piece): launch for piece, launch in launched(events)}
    yield begins, parts([(part, [*(starts[id(e)] for e in pieces), *pieces]) for part, pieces in given])
    pauses = "the pauses between the pieces belong to the span"
    for length in (covered, added_up):
        yield pauses, parts(given, span=length)
    ends = "the last end need not be that of the piece that starts last, or stands last: take the largest"
    for order in (sorted, list):
        yield ends, parts(given, span=lambda pieces, order=order: _by_position(order(intervals(pieces))))
    shadows = parts([(part, [part]) for part in of(events, "gpu_user_annotation")])
    yield "each stream has its own range over the GPU: span is from the first start to the last end of all", shadows
    last_start = "span ends with an end: the largest ts is a start"
    yield last_start, parts(given, span=lambda pieces: first_to_last([piece | {"dur": 0.0} for piece in pieces]))
    yield from again(given)


def _from_the_first(pieces: list[Event]) -> float:
    return max(e["ts"] + e["dur"] for e in pieces[1:]) - pieces[0]["ts"] if pieces else 0.0


def _by_position(given: list[Interval]) -> float:
    return given[-1][1] - given[0][0] if given else 0.0
