"""What each part of a trace costs: its pieces of GPU work, found by bisection, and their times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01.checks.covered import covered, first_to_last
from labs_helpers.transformer.lab01.checks.practice_traces import of

Owned = list[tuple[Event, list[Event]]]  # each part, as often as it stands there, with its pieces of GPU work
Parts = dict[str, tuple[float, float, float]]  # name: (launches, µs, span)

AGAIN = "a part may stand there again: add to what it has"


def owned(events: list[Event]) -> Owned:
    """Of a launch's thread the last part that began no later, if it had not ended."""
    pieces: dict[int, list[Event]] = {id(part): [] for part in of(events, "user_annotation")}
    threads: dict[int, list[Event]] = {}
    for part in sorted(of(events, "user_annotation"), key=lambda part: part["ts"]):
        threads.setdefault(part["tid"], []).append(part)
    starts = {tid: [part["ts"] for part in parts] for tid, parts in threads.items()}
    for piece, launch in launched(events):
        at = bisect_right(starts.get(launch["tid"], []), launch["ts"]) - 1
        if at >= 0 and inside(part := threads[launch["tid"]][at], launch):
            pieces[id(part)].append(piece)
    return [(part, pieces[id(part)]) for part in of(events, "user_annotation")]


def launched(events: list[Event]) -> list[tuple[Event, Event]]:
    """(piece of GPU work, its launch), for those that have one."""
    calls = {event["args"]["correlation"]: event for event in of(events, "cuda_runtime")}
    return [(e, calls[number]) for e in of(events, *GPU_WORK) if (number := e["args"].get("correlation")) in calls]


def inside(part: Event, event: Event) -> bool:
    return part["ts"] <= event["ts"] < part["ts"] + part["dur"]


def parts(
    given: Owned,
    count: Callable[[list[Event]], float] = len,
    us: Callable[[list[Event]], float] = covered,
    span: Callable[[list[Event]], float] = first_to_last,
) -> Parts:
    total: Parts = {}
    for part, pieces in given:
        before = total.get(part["name"], (0, 0.0, 0.0))
        total[part["name"]] = before[0] + count(pieces), before[1] + us(pieces), before[2] + span(pieces)
    return total


def again(given: Owned) -> Candidates:
    """Of parts that stand in the trace several times, one time alone, or the mean."""
    yield AGAIN, parts(last(given))
    yield AGAIN, parts(last(given[::-1]))
    times = [part["name"] for part, _ in given]
    mean = "the sum over all times that a part stands there is asked for, not the mean"
    yield mean, {name: tuple(number / times.count(name) for number in row) for name, row in parts(given).items()}


def last(given: Owned) -> Owned:
    return list({part["name"]: (part, pieces) for part, pieces in given}.values())
