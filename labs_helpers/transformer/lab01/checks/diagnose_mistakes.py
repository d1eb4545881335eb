"""Compute the cost of each part of a trace, and what common mistakes make of names, launches, µs and spans."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.measure.written_trace import of
from labs_helpers.transformer.lab01.checks.covered import added_up, covered, first_to_last, intervals

Owned = list[tuple[Event, list[Event]]]  # each occurrence of a part, with its pieces of GPU work
Parts = dict[str, tuple[float, float, float]]  # name: (launches, µs, span)

AGAIN = "a part may occur again: add to its totals"
LATER = "a piece belongs to the part that launched it, but runs later: find where its launch began"
SHADOW = "a gpu_user_annotation marks the GPU's time: a part is the user_annotation on the CPU"
THREAD = "another thread's launches do not belong to this part: compare the launch's tid with the part's"
CALLS = "copies, memsets and graphs are launched by other cuda_runtime events than cudaLaunchKernel"
NOTHING = "no part has any piece: find the launch by correlation and compare its tid; a piece's tid is its stream"
ENDED = "a part ends at ts + dur: work launched at that time or later does not belong to it"
BEGUN = "a part begins at ts: work launched at that time belongs to it"
MEET = "a part includes its start but not its end: ts <= at < ts + dur"
GRAPH = "one launch may start several pieces, all with its correlation: loop over pieces, not launches"
COUNTED = "count pieces of GPU work as launches: some runtime calls only wait, and one may start several pieces"
BETWEEN = "the time between two occurrences of a part does not belong to it: add up the spans of its occurrences"
ON_CPU = "span is on the GPU, from the first piece's start to the last one's end; a part's dur is the CPU's time"
BEGINS = "span begins when the first piece starts on the GPU, not with the part or its launch on the CPU"
ENDS = "the piece that starts last, or is listed last, need not end last: take the largest end"
STREAMS = "each stream has its own GPU range: span is from the first start to the last end of all streams"


class Answer(NamedTuple):
    table: Parts
    slow: str
    why: str


def right(events: list[Event]) -> Answer:
    table = parts(owned(events))
    slow = max(table, key=lambda name: table[name][2])
    return Answer(table, slow, "waits" if table[slow][1] < table[slow][2] / 2 else "works")


def owned(events: list[Event]) -> Owned:
    """Return the latest part on a launch's thread that had begun by then, if it had not ended."""
    pieces: dict[int, list[Event]] = {id(part): [] for part in of(events, "user_annotation")}
    threads: dict[int, list[Event]] = {}
    for part in sorted(of(events, "user_annotation"), key=lambda part: part["ts"]):
        threads.setdefault(part["tid"], []).append(part)
    starts = {tid: [part["ts"] for part in parts] for tid, parts in threads.items()}
    for piece, launch in launched(events):
        at = bisect_right(starts.get(launch["tid"], []), launch["ts"]) - 1
        if at >= 0 and inside(part := threads[launch["tid"]][at], launch["ts"]):
            pieces[id(part)].append(piece)
    return [(part, pieces[id(part)]) for part in of(events, "user_annotation")]


def launched(events: list[Event]) -> list[tuple[Event, Event]]:
    """Return (piece of GPU work, its launch) for the pieces that have one."""
    calls = {event["args"]["correlation"]: event for event in of(events, "cuda_runtime")}
    return [(e, calls[number]) for e in of(events, *GPU_WORK) if (number := e["args"].get("correlation")) in calls]


def inside(part: Event, ts: float) -> bool:
    return part["ts"] <= ts < part["ts"] + part["dur"]


def parts(
    given: Owned,
    us: Callable[[list[Event]], float] = covered,
    span: Callable[[list[Event]], float] = first_to_last,
) -> Parts:
    total: Parts = {}
    for part, pieces in given:
        before = total.get(part["name"], (0, 0.0, 0.0))
        total[part["name"]] = before[0] + len(pieces), before[1] + us(pieces), before[2] + span(pieces)
    return total


def names(events: list[Event]) -> Candidates:
    given, ranges = owned(events), of(events, "user_annotation")
    yield "include parts that launched nothing, with zeros", parts([pair for pair in given if pair[1]])
    for kinds in (["cpu_op"], ["cpu_op", "user_annotation"]):
        yield "operations are no parts", dict.fromkeys(event["name"] for event in of(events, *kinds))
    for kinds in (["gpu_user_annotation"], ["gpu_user_annotation", "user_annotation"]):
        yield SHADOW, dict.fromkeys(event["name"] for event in of(events, *kinds))
    numbered = dict.fromkeys(event["args"]["External id"] for event in ranges)
    yield "a repeated name is the same part: add up by name, not by number", numbered
    for key in (None, "", "other", "none", "None"):
        yield "leave out work that was launched outside all parts", parts(given) | {key: ()}


def launches(events: list[Event]) -> Candidates:
    ranges, given, work = of(events, "user_annotation"), owned(events), of(events, *GPU_WORK)
    call = {id(piece): launch for piece, launch in launched(events)}
    operations = {event["args"]["External id"]: event for event in of(events, "cpu_op")}
    place = {id(event): number for number, event in enumerate(events)}

    def by(belongs: Callable[[Event, Event], bool], some: list[Event] = work) -> Parts:
        return parts([(part, [piece for piece in some if belongs(part, piece)]) for part in ranges])

    def of_call(belongs: Callable[[Event, Event], bool]) -> Parts:
        return by(lambda part, piece: belongs(part, call[id(piece)]), [piece for piece in work if id(piece) in call])

    def of_thread(test: Callable[[float, float, float], bool]) -> Parts:
        return of_call(
            lambda part, call: call["tid"] == part["tid"] and test(part["ts"], call["ts"], part["ts"] + part["dur"])
        )

    def kept(test: Callable[[Event], bool]) -> Parts:
        return parts([(part, [piece for piece in pieces if test(piece)]) for part, pieces in given])

    def of_shadow(part: Event, piece: Event) -> bool:
        own = [s for s in of(events, "gpu_user_annotation") if s["args"] == part["args"]]
        return any(inside(shadow, piece["ts"]) for shadow in own)

    def of_operation(part: Event, piece: Event) -> bool:
        operation = operations.get(piece["args"].get("External id"))
        return operation is not None and operation["tid"] == part["tid"] and inside(part, operation["ts"])

    yield LATER, by(lambda part, piece: inside(part, piece["ts"]))
    yield LATER, by(lambda part, piece: inside(part, piece["ts"]) or inside(piece, part["ts"]))
    yield LATER, by(lambda part, piece: inside(part, piece["ts"]) and inside(part, piece["ts"] + piece["dur"]))
    ended = of_call(lambda part, call: call["tid"] == part["tid"] and inside(part, call["ts"] + call["dur"]))
    yield "a piece belongs to the part in which its launch began, not to the one in which it ended", ended
    for sentence, test in (
        (ENDED, lambda start, at, end: start <= at <= end),
        (ENDED, lambda start, at, end: start <= at),
        (BEGUN, lambda start, at, end: start < at < end),
        (MEET, lambda start, at, end: start < at <= end),
    ):
        yield sentence, of_thread(test)
    yield THREAD, of_call(lambda part, call: inside(part, call["ts"]))
    yield "a GPU range does not identify a part's work: other work may run in it, or it may be missing", by(of_shadow)
    yield "not every piece has an operation: its launch has the same correlation", by(of_operation)
    behind = kept(lambda piece: place[id(call[id(piece)])] < place[id(piece)])
    yield "the list is unordered: a launch may come after its kernel", behind
    for word in ("LaunchKernel", "Launch"):
        yield CALLS, kept(lambda piece, word=word: word in call[id(piece)]["name"])
    yield NOTHING, kept(lambda piece: False)
    for what, kinds in (("copies", GPU_WORK[::2]), ("memsets", GPU_WORK[:2]), ("copies and memsets", GPU_WORK[:1])):
        yield f"{what} are pieces of GPU work too", kept(lambda piece, kinds=kinds: piece["cat"] in kinds)
    for order in (work, work[::-1]):
        last = {piece["args"]["correlation"]: piece for piece in order}
        yield GRAPH, kept(lambda piece, last=last: last[piece["args"]["correlation"]] is piece)
    yield from _again(given)
    for word in ("", "Launch", "LaunchKernel"):
        named = [event for event in of(events, "cuda_runtime") if word in event["name"]]
        yield COUNTED, by(lambda part, call: call["tid"] == part["tid"] and inside(part, call["ts"]), named)


def us(events: list[Event]) -> Candidates:
    given, starts = owned(events), {id(piece): launch for piece, launch in launched(events)}
    yield "pieces that run at the same time were added up: µs is the length of their union", parts(given, added_up)
    pauses = "pauses between pieces are not work: µs is the time in which at least one runs"
    yield pauses, parts(given, first_to_last)
    yield "a part's dur is CPU time; return GPU time", parts([(part, [part]) for part, _ in given])
    since = [(part, [_from(starts[id(piece)], piece) for piece in pieces]) for part, pieces in given]
    yield "a piece's time begins with its own start, not with its launch", parts(since)
    for unit in (1e3, 1e6):
        yield "return µs, the trace's unit", parts(given, lambda pieces, u=unit: covered(pieces) / u)
    yield from _again(given)


def spans(events: list[Event]) -> Candidates:
    given, starts = owned(events), {id(piece): launch for piece, launch in launched(events)}
    every = [(part, [e for one, own in given if one["name"] == part["name"] for e in own]) for part, _ in given]
    yield BETWEEN, parts(_last(every))
    for whose, some in (("the whole trace's", of(events)), ("that of all GPU work", of(events, *GPU_WORK))):
        yield f"span is the part's own, not {whose}", parts(_last([(part, some) for part, _ in given]))
    yield ON_CPU, parts([(part, [part]) for part, _ in given])
    for begins in (lambda part, piece: part, lambda part, piece: starts[id(piece)]):
        since = [(part, [_from(begins(part, piece), piece) for piece in pieces]) for part, pieces in given]
        yield BEGINS, parts(since)
    for length in (covered, added_up):
        yield "the pauses between the pieces belong to the span", parts(given, span=length)
    for order in (sorted, list):
        yield ENDS, parts(given, span=lambda pieces, order=order: _by_position(order(intervals(pieces))))
    yield STREAMS, parts([(part, [part]) for part in of(events, "gpu_user_annotation")])
    starting = parts(given, span=lambda pieces: first_to_last([piece | {"dur": 0.0} for piece in pieces]))
    yield "span ends with the largest end: the largest ts is a start", starting
    yield from _again(given)


def _again(given: Owned) -> Candidates:
    """For parts that occur several times, return only one occurrence, or the mean."""
    yield AGAIN, parts(_last(given))
    yield AGAIN, parts(_last(given[::-1]))
    times = [part["name"] for part, _ in given]
    mean = {name: tuple(number / times.count(name) for number in row) for name, row in parts(given).items()}
    yield "return the sum over all occurrences of a part, not the mean", mean


def _last(given: Owned) -> Owned:
    return list({part["name"]: (part, pieces) for part, pieces in given}.values())


def _from(begins: Event, piece: Event) -> Event:
    return piece | {"ts": begins["ts"], "dur": piece["ts"] + piece["dur"] - begins["ts"]}


def _by_position(given: list[tuple[float, float]]) -> float:
    return given[-1][1] - given[0][0] if given else 0.0


def slow(events: list[Event]) -> Candidates:
    table = right(events).table
    for sentence, key in (
        ("you chose the largest µs; waits count too, so compare span", lambda us, span: us),
        ("you chose the part that waits longest; slow is the part with the largest span", lambda us, span: span - us),
        ("you chose the smallest; slow is the part with the largest span", lambda us, span: -span),
    ):
        yield sentence, max(table, key=lambda name, key=key: key(*table[name][1:]))
    most = max(table, key=lambda name: table[name][0])
    yield "you chose the part with the most launches; slow is the part with the largest span", most
    yield "the names were compared, not their spans", max(table)


def why(events: list[Event]) -> Candidates:
    table, slow, _ = right(events)
    (_, us, span), whole = table[slow], first_to_last(of(events))
    for sentence, waits in (
        ("it waits if its µs are less than half of its span, not more", span / 2 < us),
        ("it waits only if its µs are less than half of its span, not merely less than its span", us < span),
        ("exactly half is not less than half", us <= span / 2),
        ("compare its µs with half of its own span, not with the trace's time", us < whole / 2),
        ("the question is about the part with the largest span", any(u < s / 2 for _, u, s in table.values())),
    ):
        yield sentence, "waits" if waits else "works"
