"""Decide whether a notebook's outputs match its code and today's colors, by a hash in its metadata."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from nbformat.notebooknode import NotebookNode

from labs_helpers.draw import roles

KEY = "executed_sources"


def digest(notebook: NotebookNode) -> str:
    """Return a hash of the code cells' sources, in order, and of the roles that figures are drawn in."""
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    drawn_in = Path(roles.__file__).read_text()
    return hashlib.sha256(json.dumps([*sources, drawn_in]).encode()).hexdigest()


def is_current(notebook: NotebookNode) -> bool:
    """Return True if code and roles have not changed since the outputs were stored."""
    return notebook.metadata.get(KEY) == digest(notebook)


def keep_outputs(executed: NotebookNode, notebook: NotebookNode) -> None:
    """Copy outputs and execution counts from `executed`, a copy that was run, and store the hash of its sources.

    Nothing else of the run stays: no times in the cells, no Python version.
    """
    for cell, run in zip(notebook.cells, executed.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = run.outputs, run.execution_count
    notebook.metadata[KEY] = digest(executed)
