"""Exercise 3 of lab 01: the GPU's time by operation, on traces made by hand and on real ones."""

from itertools import pairwise

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_table, likely
from labs_helpers.measure.trace import GPU_WORK, Event
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks.ask import ask, showing
from labs_helpers.transformer.lab01.checks.by_operation_causes import (
    ORPHAN,
    Table,
    call_causes,
    name_causes,
    pairs,
    table,
    us_causes,
)
from labs_helpers.transformer.lab01.checks.by_operation_traces import CASES
from labs_helpers.transformer.lab01.checks.practice_traces import of
from labs_helpers.transformer.lab01.checks.real_traces import real_traces

KEYS = {
    "External id": 'not every event has an "External id": args.get("External id")',
    "correlation": 'an operation has no "correlation"; that is a launch\'s number, and "External id" an operation\'s',
}
ADVICE = "follow one kernel by hand: its External id, the operation that has it, and where its µs end up."


@exercise("01/3", "whose time it is", points=10, minutes=15, reference=exercises.by_operation)
def by_operation(student):
    for case, events in CASES.items():
        with showing(events):
            yield _compared(case, student, events, name_causes, call_causes, us_causes)
    for case, events in real_traces():
        yield _compared(case, student, events)


def _compared(case: str, student, events: list[Event], *causes) -> str:
    known = {event["args"]["External id"] for event in of(events, "cpu_op")}
    unknown = {event["args"].get("External id") for event in of(events, *GPU_WORK)} - known
    answer = ask(case, student, events, KEYS | dict.fromkeys(unknown, ORPHAN))
    right = table(pairs(events))
    found = expect_table(case, answer, right, ("calls", "µs"), [of_one(events) for of_one in causes], ADVICE)
    _expect_order(case, found)
    return f"{case}: {len(right)} operations, the dearest is {next(iter(found), None)}"


def _expect_order(case: str, found: Table) -> None:
    """Raises Wrong unless the µs never grow."""
    names, us, calls = list(found), [row[1] for row in found.values()], [row[0] for row in found.values()]
    late = next((i for i, (before, after) in enumerate(pairwise(us), 1) if after > before), None)
    if late is None:
        return
    means = [us / calls for calls, us in found.values()]
    orders = (
        ("they are in order of the mean of a call; the sum decides", means == sorted(means, reverse=True)),
        ("the dearest comes first: reverse=True", us == sorted(us)),
        ("they are in order of their names; µs decide", names == sorted(names)),
        ("they are in order of their calls; µs decide", len(set(calls)) > 1 and calls == sorted(calls, reverse=True)),
    )
    pair = f"{names[late]} ({us[late]:g} µs) stands behind {names[late - 1]} ({us[late - 1]:g} µs)"
    raise Wrong(case, f"{pair}; the dearest comes first", cause=likely(orders, bool))
