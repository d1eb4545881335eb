"""The course's own answers: their text, and the number of cases in a check."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from labs_helpers.course.stub import cell_of
from labs_helpers.labs import Lab


def cases_in_all(lab: Lab, exercise: str) -> int | None:
    """Return the number of lines that a check yields for the reference; None if there is no reference."""
    one: Any = next(one for one in lab.exercises() if one.id == exercise)
    reference = _reference(lab, one)
    return None if reference is None else len(one.verify(reference))


@cache
def own_answers(lab: Lab) -> dict[str, str]:
    """Return exercise → the course's answer as a cell, for each exercise whose answer is installed."""
    found = {one.id: _reference(lab, one) for one in lab.exercises()}
    return {id: cell_of(reference) for id, reference in found.items() if reference is not None}


def _reference(lab: Lab, exercise: Any) -> Any:
    if exercise.reference is not None:
        return exercise.reference
    try:
        return getattr(importlib.import_module(lab.transfer), exercise.trial.__name__)
    except ModuleNotFoundError:
        return None
