"""The shipped notebooks: as shipped, solved, and reduced to the cells that exercises need."""

from __future__ import annotations

import symtable

from IPython.core.inputtransformer2 import TransformerManager
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


def without_demonstrations(notebook: NotebookNode) -> NotebookNode:
    """Set-up, exercises, checks and summary, and of the other code what binds a name that they use."""
    kept, used = [], set()
    for number, cell in reversed(list(enumerate(notebook.cells))):
        if cell.cell_type == "code":
            binds, uses = names(cell.source)
            if reset.grade_id(cell) or binds & used or "setup(" in cell.source or "check.summary()" in cell.source:
                kept.insert(0, number)
                used = used - binds | uses
    notebook.cells = [notebook.cells[number] for number in kept]
    return notebook


def names(source: str) -> tuple[set[str], set[str]]:
    """(the names that a cell binds, those that it or a function in it uses), of the notebook's globals."""
    tables = [symtable.symtable(TransformerManager().transform_cell(source), "cell", "exec")]
    binds = {s.get_name() for s in tables[0].get_symbols() if s.is_assigned() or s.is_imported()}
    uses = {s.get_name() for s in tables[0].get_symbols() if s.is_referenced()}
    while tables := [inner for table in tables for inner in table.get_children()]:
        uses |= {s.get_name() for table in tables for s in table.get_symbols() if s.is_global()}
    return binds, uses
