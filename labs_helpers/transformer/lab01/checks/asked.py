"""What an answer makes of a trace, or of one of its events, with what it was given compared before and after."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any

from labs_helpers.course.verdict import Candidates, Wrong, describe_error, expect_number
from labs_helpers.measure.trace import Event
from labs_helpers.transformer.lab01.checks.practice_traces import drawn

LABELS = (
    'labels and arrows have none: of all events only those with "ph" == "X" took time, and have a category, a start '
    "and a duration"
)


def ask(
    case: str,
    student: Callable,
    events: list[Event],
    causes: Mapping[Any, str] | None = None,
    arguments: Callable[[list[Event]], tuple] = lambda given: (given,),
) -> Any:
    """`student(*arguments(events))`, given a copy. Raises Wrong for an error, and where the copy was changed.

    causes: of an error, by its type, of a KeyError by the key. Labels and arrows, which have no category, are here.
    """
    given = copy.deepcopy(events)
    try:
        answer = student(*arguments(given))
    except Exception as error:
        wrong = describe_error(student, error, case)
        key = error.args[0] if isinstance(error, KeyError) and error.args else type(error)
        cause = {**dict.fromkeys(("cat", "dur", "ts", "args"), LABELS), **(causes or {})}.get(key, "")
        raise Wrong(case, wrong.found, cause=wrong.causes or cause) from error
    expect_unchanged(case, given, events)
    return answer


def expect_unchanged(case: str, given: list[Event], before: list[Event]) -> None:
    """Raises Wrong, saying what has changed, unless the events `given` are still as they were `before`."""
    if given == before:
        return
    if len(given) != len(before):
        found = f"the list of events that you were given had {len(before)} of them, and has {len(given)}"
        raise Wrong(case, found, cause="events were added or removed; make a list of your own")
    if all(event in before for event in given):
        found = "the list of events that you were given is in another order now"
        raise Wrong(case, found, cause="events.sort() orders that list itself; sorted(events, …) makes one of its own")
    old, new = next((old, new) for old, new in zip(before, given, strict=True) if old != new)
    key = next(key for key in {**old, **new} if old.get(key) != new.get(key))
    found = f"the event {old['name']} that you were given was changed: its {key!r} was {_shown(old, key)} and "
    raise Wrong(case, f"{found}is {_shown(new, key)}; keep what you work out in a dict of your own")


def _shown(event: Event, key: str) -> str:
    return f"{event[key]!r:.60}" if key in event else "not there"


def expect_near(case: str, name: str, found, expected: float, causes: Candidates = ()) -> None:
    """Raises Wrong unless `found` is `expected`, up to what float64 rounds."""
    if isinstance(found, Real) and abs(found - expected) <= 1e-9:
        return
    expect_number(case, name, found, expected, causes, within=1e-9)


@contextmanager
def showing(events: list[Event], numbers: bool = True, last: str = "") -> Iterator[None]:
    """Puts the events, drawn, into a Wrong that is raised inside."""
    try:
        yield
    except Wrong as wrong:
        shown = "\n".join([wrong.found, drawn(events, numbers), *[f"  {last}"] * bool(last)])
        raise Wrong(wrong.case, shown, cause=wrong.causes, advice=wrong.advice) from None
