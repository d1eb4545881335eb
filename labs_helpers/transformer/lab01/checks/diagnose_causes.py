"""What common mistakes make of the parts of a trace: of their names, their launches, their times and their spans."""

from __future__ import annotations

from collections.abc import Callable

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01.checks.covered import Interval, added_up, covered, first_to_last, intervals
from labs_helpers.transformer.lab01.checks.part_costs import Parts, again, inside, last, launched, owned, parts
from labs_helpers.transformer.lab01.checks.practice_traces import of

LATER = "a piece belongs to the part that launched it, and runs later than it: where did its launch begin?"
SHADOW = "a gpu_user_annotation is drawn over the GPU's time: a part is the user_annotation, on the CPU"
THREAD = "what another thread launches meanwhile is not this part's: compare the launch's tid with the part's"


def name_causes(events: list[Event]) -> Candidates:
    given = owned(events)
    yield "a part that launched nothing is there too, with zeros", parts([pair for pair in given if pair[1]])
    yield "operations are no parts", dict.fromkeys(event["name"] for event in of(events, "cpu_op"))
    yield "operations are no parts", dict.fromkeys(event["name"] for event in of(events, "cpu_op", "user_annotation"))
    drawn = {event["name"] for event in of(events, "gpu_user_annotation")}
    for names in (drawn, drawn | set(parts(given))):
        yield SHADOW, dict.fromkeys(names)
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

    def pieces_of(part: Event) -> list[Event]:
        return next(pieces for one, pieces in given if one is part)

    def till_the_end(part: Event, piece: Event) -> bool:
        launch = calls.get(id(piece))
        ends = launch and {"ts": launch["ts"] + launch["dur"]}
        return bool(ends) and launch["tid"] == part["tid"] and inside(part, ends)

    def of_shadow(part: Event, piece: Event) -> bool:
        return any(inside(s, piece) for s in shadows if s["args"]["External id"] == part["args"]["External id"])

    def of_operation(part: Event, piece: Event) -> bool:
        operation = operations.get(piece["args"].get("External id"))
        return operation is not None and operation["tid"] == part["tid"] and inside(part, operation)

    yield LATER, by(inside)
    yield LATER, by(lambda part, piece: inside(part, piece) or inside(piece, part))
    yield LATER, by(lambda part, piece: inside(part, piece) and piece["ts"] + piece["dur"] <= part["ts"] + part["dur"])
    yield LATER, by(lambda part, piece: inside(part, {"ts": piece["ts"] + piece["dur"] / 2}))
    yield LATER, by(lambda part, piece: part is max(ranges, key=lambda one: (one["ts"] <= piece["ts"], one["ts"])))
    yield "a piece belongs to the part in which its launch began, not where that ended", by(till_the_end)
    yield THREAD, by(lambda part, piece: id(piece) in calls and inside(part, calls[id(piece)]))
    yield "a range over the GPU is no proof: others' work runs meanwhile, and not every part has one", by(of_shadow)
    yield "not every piece has an operation: its launch has the same correlation", by(of_operation)
    place = {id(event): number for number, event in enumerate(events)}
    yield (
        "the list is in no order: a launch may stand behind its kernel",
        by(lambda part, piece: piece in pieces_of(part) and place[id(calls[id(piece)])] < place[id(piece)]),
    )
    names = "copies, memsets and graphs are launched by other cuda_runtime events than cudaLaunchKernel"
    for name in ("LaunchKernel", "Launch"):
        yield names, by(lambda part, piece, name=name: piece in pieces_of(part) and name in calls[id(piece)]["name"])
    nothing = (
        "no launch was found in any part: it has the piece's correlation and the part's tid; a piece's is its stream"
    )
    yield nothing, by(lambda part, piece: False)

    def begun(part: Event, piece: Event) -> bool:
        launch = calls.get(id(piece))
        earlier = [one for one in ranges if launch and one["tid"] == launch["tid"] and one["ts"] <= launch["ts"]]
        return bool(earlier) and part is max(earlier, key=lambda one: one["ts"])

    yield "a part ends: what is launched behind it is in none", by(begun)
    for what, kinds in (("copies", GPU_WORK[::2]), ("memsets", GPU_WORK[:2]), ("copies and memsets", GPU_WORK[:1])):
        yield f"{what} are pieces of GPU work too", parts([(part, of(pieces, *kinds)) for part, pieces in given])
    graph = "one launch may start several pieces, all with its correlation: go over the pieces, not over the launches"
    for one in ({e["args"]["correlation"]: e for e in work}, {e["args"]["correlation"]: e for e in work[::-1]}):
        yield (
            graph,
            parts([(part, [e for e in pieces if e is one[e["args"]["correlation"]]]) for part, pieces in given]),
        )
    yield from again(given)
    counted = "launches are pieces of GPU work: some calls of the runtime wait, and one may start several"
    for name in ("", "Launch", "LaunchKernel"):
        named = [event for event in of(events, "cuda_runtime") if name in event["name"]]
        yield (
            counted,
            parts([(part, [e for e in named if e["tid"] == part["tid"] and inside(part, e)]) for part in ranges]),
        )
    distinct = "each piece counts, also where the name comes again"
    yield distinct, parts(given, count=lambda pieces: len({piece["name"] for piece in pieces}))


def us_causes(events: list[Event]) -> Candidates:
    given = owned(events)
    yield "pieces that run at the same time were added up: µs is the length of their union", parts(given, us=added_up)
    pauses = "the pauses between pieces are no work: µs is the time in which at least one runs"
    yield pauses, parts(given, us=first_to_last)
    yield "a part's dur is the CPU's time; the GPU's is asked for", parts([(part, [part]) for part, _ in given])
    starts = dict((id(piece), launch) for piece, launch in launched(events))
    launches = "a launch's dur is the CPU's time; the GPU's is asked for"
    yield launches, parts([(part, [starts[id(piece)] for piece in pieces]) for part, pieces in given], us=added_up)
    begins = "a piece's time begins with its own start, not with its launch"
    since = [(part, [e | _from(starts[id(e)], e) for e in pieces]) for part, pieces in given]
    yield begins, parts(since)
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


def _from(launch: Event, piece: Event) -> dict[str, float]:
    return {"ts": launch["ts"], "dur": piece["ts"] + piece["dur"] - launch["ts"]}


def _from_the_first(pieces: list[Event]) -> float:
    return max(e["ts"] + e["dur"] for e in pieces[1:]) - pieces[0]["ts"] if pieces else 0.0


def _by_position(given: list[Interval]) -> float:
    return given[-1][1] - given[0][0] if given else 0.0
