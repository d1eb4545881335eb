"""The shipped labs, and what belongs into their exercise cells."""

from __future__ import annotations

import importlib
from pathlib import Path

import nbformat

from labs_helpers.course.stub import cell_of
from labs_helpers.labs import LABS, lab

NOTEBOOKS = [one.path for one in LABS]


def read(path: Path):
    return nbformat.read(path, as_version=4)


def grade_id(cell) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def exercises(notebook) -> dict:
    """grade_id → exercise cell."""
    return {grade_id(cell): cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")}


def exercise(identifier: str):
    """The registered Exercise of a grade_id such as '02-3'."""
    number, _, _ = identifier.partition("-")
    return next(e for e in lab(number).exercises() if e.id == identifier.replace("-", "/"))


def reference(identifier: str):
    """The reference of a grade_id; of a transfer exercise the one that students do not get."""
    registered = exercise(identifier)
    if registered.reference is not None:
        return registered.reference
    module = importlib.import_module(lab(identifier[:2]).transfer)
    return getattr(module, registered.trial.__name__)


def solved_cell(identifier: str) -> str:
    """The exercise cell with its reference in it."""
    return cell_of(reference(identifier))


def solved(notebook):
    """The same notebook with every exercise solved."""
    for identifier, cell in exercises(notebook).items():
        cell.source = solved_cell(identifier)
    return notebook
