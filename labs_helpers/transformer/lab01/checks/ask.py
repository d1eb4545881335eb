"""What an answer makes of a trace, or of one of its events, with what it was given compared before and after."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any

from labs_helpers.course.verdict import Candidates, Wrong, describe_error, expect_number, expect_unchanged
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
    expect_unchanged(case, given, events, "event")
    return answer


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
