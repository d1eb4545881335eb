"""What common mistakes make of the parts of a trace."""

from __future__ import annotations

from collections.abc import Callable

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01.checks.covered import added_up, covered, first_to_last
from labs_helpers.transformer.lab01.checks.part_costs import Owned, Parts, inside, launched, owned, parts
from labs_helpers.transformer.lab01.checks.practice_traces import of

LATER = "a piece belongs to the part that launched it, and runs later than it: where did its launch begin?"
THREAD = "what another thread launches meanwhile is not this part's: compare the launch's tid with the part's"
AGAIN = "a part may stand there again: add to what it has"


def name_causes(events: list[Event]) -> Candidates:
    given = owned(events)
    yield "a part that launched nothing is there too, with zeros", parts([pair for pair in given if pair[1]])
    yield "operations are no parts", dict.fromkeys(event["name"] for event in of(events, "cpu_op"))
    yield "operations are no parts", dict.fromkeys(event["name"] for event in of(events, "cpu_op", "user_annotation"))
    numbered = "a name that stands there again is the same part: add up by name, not by number"
    yield numbered, dict.fromkeys(event["args"]["External id"] for event in of(events, "user_annotation"))
    for key in (None, "", "other", "none", "None"):
        yield "what was launched in no part is left out", parts(given) | {key: ()}


def launch_causes(events: list[Event]) -> Candidates:
    ranges, given, work = of(events, "user_annotation"), owned(events), of(events, *GPU_WORK)
    calls = {id(piece): launch for piece, launch in launched(events)}
    operations = {event["args"]["External id"]: event for event in of(events, "cpu_op")}
    shadows = of(events, "gpu_user_annotation")

    def by(belongs: Callable[[Event, Event], bool]) -> Parts:
        return parts([(part, [piece for piece in work if belongs(part, piece)]) for part in ranges])

    def of_shadow(part: Event, piece: Event) -> bool:
        return any(inside(s, piece) for s in shadows if s["args"]["External id"] == part["args"]["External id"])

    def of_operation(part: Event, piece: Event) -> bool:
        operation = operations.get(piece["args"].get("External id"))
        return operation is not None and operation["tid"] == part["tid"] and inside(part, operation)

    yield LATER, by(inside)
    yield LATER, by(lambda part, piece: inside(part, piece) or inside(piece, part))
    yield LATER, by(lambda part, piece: inside(part, piece) and piece["ts"] + piece["dur"] <= part["ts"] + part["dur"])
    yield THREAD, by(lambda part, piece: id(piece) in calls and inside(part, calls[id(piece)]))
    yield "a range over the GPU is no proof: others' work runs meanwhile, and not every part has one", by(of_shadow)
    yield "not every piece has an operation: its launch has the same correlation", by(of_operation)
    yield "no piece was found: its own tid is its stream, the thread is its launch's", by(lambda part, piece: False)
    for what, kinds in (("copies", GPU_WORK[::2]), ("memsets", GPU_WORK[:2]), ("copies and memsets", GPU_WORK[:1])):
        yield f"{what} are pieces of GPU work too", parts([(part, of(pieces, *kinds)) for part, pieces in given])
    graph = "one launch may start several pieces, all with its correlation: go over the pieces, not over the launches"
    for one in ({e["args"]["correlation"]: e for e in work}, {e["args"]["correlation"]: e for e in work[::-1]}):
        yield (
            graph,
            parts([(part, [e for e in pieces if one[e["args"]["correlation"]] is e]) for part, pieces in given]),
        )
    yield from _again(given)
    counted = "launches are pieces of GPU work: some calls of the runtime wait, and one may start several"
    for name in ("", "Launch", "LaunchKernel"):
        called = [
            (
                part,
                [
                    e
                    for e in of(events, "cuda_runtime")
                    if e["tid"] == part["tid"] and inside(part, e) and name in e["name"]
                ],
            )
            for part in ranges
        ]
        yield counted, parts(called)
    yield (
        "each piece counts, also where the name comes again",
        parts(given, count=lambda pieces: len({e["name"] for e in pieces})),
    )


def us_causes(events: list[Event]) -> Candidates:
    given = owned(events)
    yield "pieces that run at the same time were added up: µs is the length of their union", parts(given, us=added_up)
    yield (
        "the pauses between pieces are no work: µs is the time in which at least one runs",
        parts(given, us=first_to_last),
    )
    yield "a part's dur is the CPU's time; the GPU's is asked for", parts([(part, [part]) for part, _ in given])
    starts = dict((id(piece), launch) for piece, launch in launched(events))
    launches = "a launch's dur is the CPU's time; the GPU's is asked for"
    yield launches, parts([(part, [starts[id(piece)] for piece in pieces]) for part, pieces in given], us=added_up)
    yield (
        "one piece's time is left of several",
        parts(given, us=lambda pieces: max((e["dur"] for e in pieces), default=0.0)),
    )
    yield "µs are asked for, as the trace has them", parts(given, us=lambda pieces: covered(pieces) / 1e3)
    yield "µs are asked for, as the trace has them", parts(given, us=lambda pieces: covered(pieces) / 1e6)
    yield from _again(given)


def span_causes(events: list[Event]) -> Candidates:
    given, whole = owned(events), first_to_last(of(events))
    together = [
        (part, [e for other, pieces in given if other["name"] == part["name"] for e in pieces]) for part, _ in given
    ]
    between = "what comes between two times that a part stands there is not its own: span is added up for each of them"
    yield between, parts(_last(together))
    yield "span is the part's own, not the whole trace's", {part["name"]: (0, 0.0, whole) for part, _ in given}
    yield (
        "span is the part's own, not that of all GPU work",
        {part["name"]: (0, 0.0, first_to_last(of(events, *GPU_WORK))) for part, _ in given},
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
        yield (
            ends,
            parts(
                given,
                span=lambda pieces, order=order: _by_position(order([(e["ts"], e["ts"] + e["dur"]) for e in pieces])),
            ),
        )
    yield (
        "span ends with an end: the largest ts is a start",
        parts(
            given,
            span=lambda pieces: max((e["ts"] for e in pieces), default=0) - min((e["ts"] for e in pieces), default=0),
        ),
    )
    yield from _again(given)


def _again(given: Owned) -> Candidates:
    """Of parts that stand in the trace several times, one time alone, or the mean."""
    yield AGAIN, parts(_last(given))
    yield AGAIN, parts(_last(given[::-1]))
    times = [part["name"] for part, _ in given]
    mean = "the sum over all times that a part stands there is asked for, not the mean"
    yield mean, {name: tuple(number / times.count(name) for number in row) for name, row in parts(given).items()}


def _last(given: Owned) -> Owned:
    return list({part["name"]: (part, pieces) for part, pieces in given}.values())


def _from_the_first(pieces: list[Event]) -> float:
    return max(e["ts"] + e["dur"] for e in pieces[1:]) - pieces[0]["ts"] if pieces else 0.0


def _by_position(intervals: list[tuple[float, float]]) -> float:
    return intervals[-1][1] - intervals[0][0] if intervals else 0.0
