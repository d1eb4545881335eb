"""The imports that an answer needs of the lab's own cells."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from labs_helpers.grading.reading.notebook_file import Cell
from labs_helpers.grading.reading.plain_python import plain_python
from labs_helpers.grading.reading.submission import Answer


def imports_of(cells: Iterable[Cell]) -> list[str]:
    """The import statements at the top level of a lab's own code cells, in order."""
    found = []
    for cell in cells:
        text, problem = plain_python(cell.source) if cell.code else ("", "")
        nodes = ast.parse(text).body if not problem else []
        found += [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return list(dict.fromkeys(found))


def used_by(answer: Answer, imports: Iterable[str]) -> list[str]:
    """Those that bind a name which the answer, or a cell of its author's before it, reads."""
    read = {
        node.id
        for text in (answer.source, *answer.before)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Name)
    }
    return [line for line in imports if _bound(line) & read]


def _bound(statement: str) -> set[str]:
    (node,) = ast.parse(statement).body
    assert isinstance(node, ast.Import | ast.ImportFrom)
    return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
