"""Find the reference of every exercise. A transfer exercise's is in tests/, which only a checkout has."""

from __future__ import annotations

import importlib

from labs_helpers.compile.source import plain
from labs_helpers.course.stub import cell_of
from labs_helpers.labs import Lab


def reference(lab: Lab, exercise):
    """Return the function that answers `exercise`, an Exercise of `lab`. ValueError if none has its check's name."""
    name = exercise.trial.__name__
    if exercise.reference is None:
        try:
            return getattr(importlib.import_module(lab.transfer), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"its reference `{name}` has to be in {lab.transfer}: {error}") from error
    if (own := plain(exercise.reference).__name__) != name:
        raise ValueError(f"its check is called `{name}` and its reference `{own}`; a notebook has one name for both")
    return exercise.reference


def solved_cell(lab: Lab, exercise) -> str:
    """Return the source of the exercise cell with the reference in it."""
    return cell_of(reference(lab, exercise))
