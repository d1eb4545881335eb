"""Judge what answers say about traces: handmade ones, in which mistakes can be recognized, and real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from labs_helpers.course.verdict import Wrong, expect_unchanged
from labs_helpers.course.verdict.messages import Errors
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts
from labs_helpers.measure.trace import Event
from labs_helpers.measure.written_trace import drawn
from labs_helpers.transformer.lab01.checks.real_traces import real_traces

LABELS = (
    r"^KeyError: '(cat|dur|ts|args)'",
    'only events with "ph" == "X" have a category, a start and a duration; labels and arrows lack them',
)


def judge_traces(
    student: Callable,
    read: Callable[[Any], Any],
    traces: Mapping[str, list[Event]],
    right: Callable[[list[Event]], Any],
    parts: Sequence[Part],
    line: Callable[[Any], str],
    *,
    real: Iterable[tuple[str, list[Event]]] | None = None,
    errors: Errors = (),
    advice: str = "",
    numbers: bool = True,
) -> Iterator[str]:
    """Yield one line for each of `traces`, then for each real one; raise Wrong if an answer is not `right`.

    read: makes an answer comparable. line: describes a right one. numbers: True if a drawn trace shows its ids.
    """

    def cases(some: Iterable[tuple[str, list[Event]]]) -> list[Case]:
        made = ((name, events, right(events)) for name, events in some)
        return [Case(name, (events,), answer, f"{name}: {line(answer)}") for name, events, answer in made]

    call = leaving_alone(student, read)
    try:
        yield from judge_parts(student, call, cases(traces.items()), parts, errors=(LABELS, *errors), advice=advice)
    except Wrong as wrong:
        shown = f"\n{drawn(traces[wrong.case], numbers)}"
        found, expected = wrong.found + shown * (not wrong.expected), wrong.expected + shown * bool(wrong.expected)
        raise Wrong(wrong.case, found, expected, wrong.where, wrong.causes, wrong.advice) from None
    alone = [part._replace(mistakes=lambda *_: ()) for part in parts]
    yield from judge_parts(student, call, cases(real_traces() if real is None else real), alone, errors=[LABELS])


def leaving_alone(student: Callable, read: Callable[[Any], Any]) -> Callable:
    """Return read(student(events, …)); raise Wrong if the answer has changed the events, or the one event."""

    def call(given: list[Event] | Event, *others: Any) -> Any:
        events = given if isinstance(given, list) else [given]
        before = deepcopy(events)
        answer = student(given, *others)
        expect_unchanged("", events, before, "event")
        return read(answer)

    return call


def near(found: float, right: float) -> bool:
    """Return True if two times or shares agree up to float64 rounding errors."""
    return abs(found - right) <= 1e-9 * max(1.0, abs(right))


def told(name: str, of: Callable[[Any], Any]) -> Callable[[Case, Any], tuple[str, str, str]]:
    """Return a description of a number, which `of` extracts from an answer."""
    return lambda case, value: (f"{value:,.6g}", f"{of(case.right):,.6g}", name)
