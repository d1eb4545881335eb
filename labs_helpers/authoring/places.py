"""Find an exercise's cells in its notebook, and the place for new ones."""

from __future__ import annotations

import re

from nbformat.notebooknode import NotebookNode

from labs_helpers.authoring import cells
from labs_helpers.course.reset import grade_id


def only(id: str, notebook: NotebookNode) -> NotebookNode | None:
    """Return the code cell with the grade_id `id`, or None. ValueError if there are two."""
    found = [cell for cell in notebook.cells if cell.cell_type == "code" and grade_id(cell) == id]
    if len(found) > 1:
        raise ValueError(f"{len(found)} cells have the grade_id {id}; there is to be one")
    return found[0] if found else None


def insert(exercise, earlier: list, notebook: NotebookNode) -> list[NotebookNode]:
    """Insert new cells for an exercise, below its heading if it has one; return its exercise and check cells."""
    heading = rf"^### Exercise {cells.number_of(exercise)} · "
    headed = [i for i, cell in enumerate(notebook.cells) if re.search(heading, cell.source, re.MULTILINE)]
    above, *below = cells.new_cells(exercise)
    if headed:
        at = headed[0] + 1
    else:
        at = _place(earlier, notebook) + 1
        notebook.cells.insert(at - 1, above)
    notebook.cells[at:at] = below
    return below[:2]


def _place(earlier: list, notebook: NotebookNode) -> int:
    """Return the place of an exercise without a heading: after the previous exercise's hints and reveal; for the
    first exercise, before the next exercise or the summary."""
    before = {f"{cells.grade_id(e)}-check" for e in earlier}
    sources = [cell.source for cell in notebook.cells]
    checks = [i for i, cell in enumerate(notebook.cells) if grade_id(cell) in before]
    if checks:
        rest = range(checks[-1] + 1, len(sources))
        return next((i for i in rest if not sources[i].startswith(("<details>", "reveal("))), len(sources))
    ahead = [i for i, source in enumerate(sources) if re.search(r"^### Exercise |check\.summary\(\)", source, re.M)]
    return ahead[0] if ahead else len(sources)
