"""The shipped notebooks, as shipped and solved."""

from __future__ import annotations

from nbformat.notebooknode import NotebookNode

from labs_helpers.authoring.cells import grade_id
from labs_helpers.authoring.references import solved_cell
from labs_helpers.course import own_copies, reset
from labs_helpers.labs import Lab


def shipped(lab: Lab) -> NotebookNode:
    return own_copies.read(lab.path)


def by_grade_id(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """grade_id → cell, of the exercise and check cells."""
    return {id: cell for cell in notebook.cells if (id := reset.grade_id(cell))}


def solved(lab: Lab) -> NotebookNode:
    """The notebook with the reference in every exercise cell."""
    notebook = shipped(lab)
    cells = by_grade_id(notebook)
    for exercise in lab.exercises():
        cells[grade_id(exercise)].source = solved_cell(lab, exercise)
    return notebook
