"""The GPU's time by operation, and what common mistakes make of it: of its names, its calls and its µs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.measure.written_trace import of
from labs_helpers.transformer.lab01.checks.covered import added_up, covered

Pairs = list[tuple[Event, Event]]
Table = dict[Hashable, tuple[float, float]]  # name: (calls, µs)

INNER = "the GPU's time belongs to the operation that launched it itself, not to those that called this one"
LATER = "a kernel runs later than the operation that launched it: its External id says whose it is"
THREAD = "another thread's operations run at the same time: the External id says whose a kernel is"
CORRELATION = 'an operation\'s number is "External id"; "correlation" is a launch\'s'
LAUNCHES = 'launches carry an "External id" too: only "cpu_op" events give it a name'
ORPHAN = "GPU work of no operation in the trace is left out"
RANGES = 'a range is no operation, though it has an "External id" too: what carries its number is left out'
TWICE = "the list is in no order: an operation may stand behind its kernels, so go over the events twice"
CPU = "a cpu_op's dur is the CPU's time; that of its kernels is asked for"
ON_CPU = "a launch is the CPU's: of what carries the number only kernels, copies and memsets count"
AS_IT_IS = "µs are asked for, as the trace has them"


def pairs(
    events: list[Event], kinds: Iterable[str] = GPU_WORK, callers: Iterable[str] = ("cpu_op",), key: str = "External id"
) -> Pairs:
    """(operation, piece of GPU work that it launched), for each piece of an operation in the trace."""
    known = {event["args"]["External id"]: event for event in of(events, *callers)}
    return [(known[number], e) for e in of(events, *kinds) if (number := e["args"].get(key)) in known]


def table(
    given: Pairs,
    name: Callable[[Event, Event], Hashable] = lambda operation, piece: operation["name"],
    us: Callable[[list[Event]], float] = added_up,
) -> Table:
    """name: how one thing to add up for is told from the next; us: the time of pieces."""
    groups: dict[Hashable, Pairs] = {}
    for pair in given:
        groups.setdefault(name(*pair), []).append(pair)
    return {
        key: (len({id(operation) for operation, _ in part}), us([piece for _, piece in part]))
        for key, part in groups.items()
    }


def names(events: list[Event]) -> Candidates:
    given, right, operations = pairs(events), table(pairs(events)), of(events, "cpu_op")
    yield "an operation that launched nothing itself is left out", dict.fromkeys(e["name"] for e in operations)
    yield from _of_others(events)
    of_kernels = table(given, lambda operation, piece: piece["name"])
    yield "the names are those of the GPU's work; operations are asked for", of_kernels
    by_number = table(given, lambda operation, piece: operation["args"]["External id"])
    yield "a number is one call: add up the calls of a name", by_number
    last = {event["args"].get("External id"): event["name"] for event in of(events, "cpu_op", "cuda_runtime")}
    yield LAUNCHES, table(given, lambda operation, piece: last[operation["args"]["External id"]])
    yield RANGES, table(pairs(events, callers=("user_annotation", "cpu_op")))
    short = {str(name).removeprefix("aten::"): row for name, row in right.items()}
    yield "a name is given as it stands in the trace", short
    orphans = len(given) < len(of(events, *GPU_WORK))
    for name in (None, "", "?", "other", "none", "None", "unknown"):
        yield ORPHAN, right | {name: ()} if orphans else right
    for what, kinds in (("copies", GPU_WORK[::2]), ("memsets", GPU_WORK[:2]), ("copies and memsets", GPU_WORK[:1])):
        yield f"{what} are the GPU's work too", table(pairs(events, kinds))
    yield TWICE, table([pair for pair in given if events.index(pair[0]) < events.index(pair[1])])


def calls(events: list[Event]) -> Candidates:
    given, every = pairs(events), [event["name"] for event in of(events, "cpu_op")]
    kernels = [operation["name"] for operation, _ in given]
    for sentence, listed in (
        ("kernels were counted: a call may launch several", kernels),
        ("every event of the name was counted: calls are those that launched something", every),
    ):
        yield sentence, {name: (listed.count(name), 0.0) for name in listed}
    yield "each name was counted once: it counts as often as it launched something", dict.fromkeys(every, (1, 0.0))
    yield "calls come first in (calls, µs)", {name: (us, calls) for name, (calls, us) in table(given).items()}


def us(events: list[Event]) -> Candidates:
    given, right, operations = pairs(events), table(pairs(events)), of(events, "cpu_op")
    for some in (operations, list({id(operation): operation for operation, _ in given}.values())):
        yield CPU, table([(one, one) for one in some])
    yield CPU, table([*given, *((one, one) for one in operations)])
    for kinds in (("cuda_runtime",), (*GPU_WORK, "cuda_runtime"), (*GPU_WORK, "cuda_runtime", "cpu_op")):
        yield ON_CPU, table(pairs(events, kinds))
    yield "µs are the sum, also of kernels that run at the same time", table(given, us=covered)
    for one in (lambda us: us[-1], lambda us: us[0], max):
        left = table(given, us=lambda pieces, one=one: one([piece["dur"] for piece in pieces]))
        yield "one kernel's time is left of several: add up all of them", left
    whole = sum(us for _, us in right.values()) or 1.0
    for sentence, changed in (
        ("that is the mean of a call: the sum is asked for", lambda calls, us: us / calls),
        ("µs are not rounded", lambda calls, us: round(us)),
        (AS_IT_IS, lambda calls, us: us / 1e3),
        (AS_IT_IS, lambda calls, us: us / 1e6),
        ("µs are asked for, not a share", lambda calls, us: us / whole),
    ):
        yield sentence, {name: (calls, changed(calls, us)) for name, (calls, us) in right.items()}
    yield from list(_of_others(events))[-2:]  # the others show in the names first


def order(events: list[Event]) -> Candidates:
    """Their rows in another order."""
    rows = [(name, *row) for name, row in table(pairs(events)).items()]
    yield "they are in order of the mean of a call; the sum decides", sorted(rows, key=lambda row: -row[2] / row[1])
    yield "the dearest comes first: reverse=True", sorted(rows, key=lambda row: row[2])
    yield "they are in order of their names; µs decide", sorted(rows)


def _of_others(events: list[Event]) -> Candidates:
    """Tables whose GPU work belongs to other operations."""
    given = pairs(events)
    yield INNER, table([(_around(events, operation)[-1], piece) for operation, piece in given])
    yield INNER, table([(one, piece) for operation, piece in given for one in _around(events, operation)])
    at_its_start = [(_open_at(events, piece["ts"]), piece) for piece in of(events, *GPU_WORK)]
    yield LATER, table([(running[0], piece) for running, piece in at_its_start if running])
    yield LATER, table([(operation, piece) for running, piece in at_its_start for operation in running])
    starts = {event["args"]["correlation"]: event for event in of(events, "cuda_runtime")}
    launched = [(starts[number], e) for e in of(events, *GPU_WORK) if (number := e["args"]["correlation"]) in starts]
    at_its_launch = [(_open_at(events, call["ts"]), piece) for call, piece in launched]
    yield THREAD, table([(running[0], piece) for running, piece in at_its_launch if running])
    yield CORRELATION, table(pairs(events, key="correlation"))


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
