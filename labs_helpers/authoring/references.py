"""The reference of every exercise: a transfer exercise's stands under tests/, which only a checkout has."""

from __future__ import annotations

import importlib

from labs_helpers.compile.source import plain
from labs_helpers.course.stub import cell_of
from labs_helpers.labs import Lab


def reference(lab: Lab, exercise):
    """The function that answers `exercise`, an Exercise of `lab`. ValueError where a transfer exercise has none."""
    if exercise.reference is not None:
        return exercise.reference
    name = exercise.trial.__name__
    try:
        return getattr(importlib.import_module(lab.transfer), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"its reference `{name}` has to be in {lab.transfer}: {error}") from error


def name_of(exercise) -> str:
    """What a notebook calls the answer."""
    return plain(exercise.reference or exercise.trial).__name__


def solved_cell(lab: Lab, exercise) -> str:
    """The source of the exercise cell with the reference in it."""
    return cell_of(reference(lab, exercise))
