"""The GPU's time by operation, and what common mistakes make of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01.checks.covered import added_up, covered
from labs_helpers.transformer.lab01.checks.practice_traces import of

Pairs = list[tuple[Event, Event]]
Table = dict[Hashable, tuple[float, float]]  # name: (calls, µs)

INNER = "the GPU's time belongs to the operation that launched it itself, not to those that called this one"
ORPHAN = "GPU work of no operation in the trace is left out"


def pairs(
    events: list[Event], kinds: Iterable[str] = GPU_WORK, callers: Iterable[str] = ("cpu_op",), key: str = "External id"
) -> Pairs:
    """(operation, piece of GPU work that it launched), for each piece of an operation in the trace."""
    known = {event["args"]["External id"]: event for event in of(events, *callers)}
    return [(known[number], e) for e in of(events, *kinds) if (number := e["args"].get(key)) in known]


def table(
    given: Pairs,
    name: Callable[[Event, Event], Hashable] = lambda operation, piece: operation["name"],
    call: Callable[[Event, Event], int] = lambda operation, piece: id(operation),
    us: Callable[[list[Event]], float] = added_up,
) -> Table:
    """name: how one thing to add up for is told from the next; call: the same for one call; us: the time of pieces."""
    groups: dict[Hashable, Pairs] = {}
    for pair in given:
        groups.setdefault(name(*pair), []).append(pair)
    return {
        key: (len({call(*pair) for pair in part}), us([piece for _, piece in part])) for key, part in groups.items()
    }


def name_causes(events: list[Event]) -> Candidates:
    """Tables with other names."""
    right, given = table(pairs(events)), pairs(events)
    launched = "an operation that launched nothing itself is left out"
    yield launched, dict.fromkeys((event["name"] for event in of(events, "cpu_op")), ()) | right
    yield from _of_others(events)
    of_kernels = "the names are those of the GPU's work; operations are asked for"
    yield of_kernels, table(given, lambda operation, piece: piece["name"])
    yield of_kernels, dict.fromkeys(event["name"] for event in of(events, *GPU_WORK))
    numbers = "a number is one call: add up the calls of a name"
    yield numbers, table(given, lambda operation, piece: operation["args"]["External id"])
    on_cpu = of(events, "cpu_op", "cuda_runtime")
    last = {event["args"]["External id"]: event["name"] for event in on_cpu if "External id" in event["args"]}
    others = 'launches carry an "External id" too: only "cpu_op" events give it a name'
    yield others, table(given, lambda operation, piece: last[operation["args"]["External id"]])
    ranges = 'a range is no operation, though it has an "External id" too: what carries its number is left out'
    yield ranges, table(pairs(events, callers=("user_annotation", "cpu_op")))
    short = {str(name).removeprefix("aten::"): row for name, row in right.items()}
    yield "a name is given as it stands in the trace", short
    for name in (None, "", "?", "other", "none", "None", "unknown"):
        yield ORPHAN, right | {name: ()}
    for what, kinds in (("copies", GPU_WORK[::2]), ("memsets", GPU_WORK[:2]), ("copies and memsets", GPU_WORK[:1])):
        yield f"{what} are the GPU's work too", table(pairs(events, kinds))
    in_time = [pair for pair in given if events.index(pair[0]) < events.index(pair[1])]
    yield (
        "the list is in no order: an operation may stand behind its kernels, so go over the events twice",
        table(in_time),
    )


def call_causes(events: list[Event]) -> Candidates:
    """Tables with other calls."""
    given, names = pairs(events), [event["name"] for event in of(events, "cpu_op")]
    yield "kernels were counted: a call may launch several", table(given, call=lambda operation, piece: id(piece))
    every = "every event of the name was counted: calls are those that launched something"
    yield every, {name: (names.count(name), 0.0) for name in names}
    yield "each name was counted once: it counts as often as it launched something", dict.fromkeys(names, (1, 0.0))
    yield "calls come first in (calls, µs)", {name: (us, calls) for name, (calls, us) in table(given).items()}
    yield from _of_others(events)


def us_causes(events: list[Event]) -> Candidates:
    """Tables with other µs."""
    given, right = pairs(events), table(pairs(events))
    operations, calls = of(events, "cpu_op"), {id(operation): operation for operation, _ in given}.values()
    cpu = "a cpu_op's dur is the CPU's time; that of its kernels is asked for"
    for some in (operations, calls):
        yield cpu, table([(one, one) for one in some])
    yield cpu, table([*given, *((one, one) for one in operations)])
    launches = "a launch is the CPU's: of what carries the number only kernels, copies and memsets count"
    for kinds in (("cuda_runtime",), (*GPU_WORK, "cuda_runtime"), (*GPU_WORK, "cuda_runtime", "cpu_op")):
        yield launches, table(pairs(events, kinds))
    yield "µs are the sum, also of kernels that run at the same time", table(given, us=covered)
    left = "one kernel's time is left of several: add up all of them"
    for one in (lambda us: us[-1], lambda us: us[0], max):
        yield left, table(given, us=lambda pieces, one=one: one([piece["dur"] for piece in pieces]))
    per_kernel = "that is the mean of a kernel: the sum is asked for"
    yield per_kernel, table(given, us=lambda pieces: added_up(pieces) / len(pieces))
    yield "that is the mean of a call: the sum is asked for", {k: (n, us / n) for k, (n, us) in right.items()}
    yield "µs are not rounded", {key: (n, round(us)) for key, (n, us) in right.items()}
    yield "µs are asked for, as the trace has them", {key: (n, us / 1e3) for key, (n, us) in right.items()}
    yield "µs are asked for, as the trace has them", {key: (n, us / 1e6) for key, (n, us) in right.items()}
    yield (
        "µs are asked for, not a share",
        {key: (n, us / sum(u for _, u in right.values())) for key, (n, us) in right.items()},
    )
    yield (
        "dur is a length: nothing is to be subtracted from it",
        table(given, us=lambda pieces: sum(e["dur"] - e["ts"] for e in pieces)),
    )
    yield from _of_others(events)


def _of_others(events: list[Event]) -> Candidates:
    """Tables whose GPU work belongs to other operations."""
    given = pairs(events)
    yield INNER, table([(_around(events, operation)[-1], piece) for operation, piece in given])
    yield INNER, table([(one, piece) for operation, piece in given for one in _around(events, operation)])
    later = "a kernel runs later than the operation that launched it: its External id says whose it is"
    at_its_start = [(_open_at(events, piece["ts"]), piece) for piece in of(events, *GPU_WORK)]
    yield later, table([(running[0], piece) for running, piece in at_its_start if running])
    yield later, table([(operation, piece) for running, piece in at_its_start for operation in running])
    calls = {event["args"]["correlation"]: event for event in of(events, "cuda_runtime")}
    launched = [(calls[number], e) for e in of(events, *GPU_WORK) if (number := e["args"]["correlation"]) in calls]
    at_its_launch = [(_open_at(events, call["ts"]), piece) for call, piece in launched]
    thread = "another thread's operations run at the same time: the External id says whose a kernel is"
    yield thread, table([(running[0], piece) for running, piece in at_its_launch if running])
    correlation = table(pairs(events, key="correlation"))
    yield 'an operation\'s number is "External id"; "correlation" is a launch\'s', correlation


def _open_at(events: list[Event], ts: float) -> list[Event]:
    """The operations of all threads that run at `ts`, the shortest first."""
    running = [event for event in of(events, "cpu_op") if event["ts"] <= ts < event["ts"] + event["dur"]]
    return sorted(running, key=lambda event: event["dur"])


def _around(events: list[Event], operation: Event) -> list[Event]:
    """`operation` and those that called it, the innermost first."""
    start, end = operation["ts"], operation["ts"] + operation["dur"]
    thread = [event for event in of(events, "cpu_op") if event["tid"] == operation["tid"]]
    callers = (event for event in thread if event["ts"] <= start and end <= event["ts"] + event["dur"])
    return sorted(callers, key=lambda event: event["dur"])
