"""Find the imports of the lab's own cells that an answer needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from labs_helpers.grading.reading.notebook_file import Cell
from labs_helpers.grading.reading.own_cells import names_bound, names_read
from labs_helpers.grading.reading.plain_python import plain_python
from labs_helpers.grading.reading.submission import Answer


def imports_of(cells: Iterable[Cell]) -> list[str]:
    """Return the import statements at the top level of a lab's own code cells, in order."""
    found = []
    for cell in cells:
        text, problem = plain_python(cell.source) if cell.code else ("", "")
        nodes = ast.parse(text).body if not problem else []
        found += [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return list(dict.fromkeys(found))


def used_by(answer: Answer, imports: Iterable[str]) -> list[str]:
    """Return the statements that bind a name which the answer, or a cell of its author's before it, reads."""
    names = set[str]().union(*(names_read(ast.parse(text)) for text in (answer.source, *answer.before)))
    return [line for line in imports if names_bound(ast.parse(line).body[0]) & names]
