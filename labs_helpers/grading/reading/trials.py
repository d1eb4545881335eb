"""Strip an answer's cell of what only tries it out: calls and asserts beside the definitions, and unread imports.

These lines become comments, so that the others keep their numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection


def without_trials(source: str) -> str:
    """Return a cell without asserts and bare expressions at its top level, such as `print(f(3))`. A call of a method of
    a value that the cell makes, as `table.append(3)`, stays: the answer may need it."""
    stored = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    values = {node.id for node in stored if not isinstance(node.ctx, ast.Load)}
    return _without(source, lambda node: _tries(node, values))


def without_unread_imports(source: str, read: Collection[str]) -> str:
    """Return a cell without the imports at its top level of which no name is in `read`."""

    def is_unread(node: ast.stmt) -> bool:
        if not isinstance(node, ast.Import | ast.ImportFrom) or getattr(node, "module", "") == "__future__":
            return False
        names = {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        return not names & {*read, "*"}

    return _without(source, is_unread)


def _tries(node: ast.stmt, values: Collection[str]) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Expr) or isinstance(node.value, ast.Constant):
        return False
    root: ast.AST = node.value
    method = isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute)
    while isinstance(root, ast.Call | ast.Attribute | ast.Subscript):
        root = root.func if isinstance(root, ast.Call) else root.value
    return not (method and isinstance(root, ast.Name) and root.id in values)


def _without(source: str, drops: Callable[[ast.stmt], bool]) -> str:
    """Comment out statements; one that `;` joins to another stays."""
    body, lines = ast.parse(source).body, source.split("\n")
    for before, node, after in zip([None, *body], body, [*body[1:], None], strict=False):
        first, last = node.lineno, node.end_lineno or 0
        joined = (before and (before.end_lineno or 0) >= first) or (after and after.lineno <= last)
        if drops(node) and not joined:
            lines[first - 1 : last] = [f"# {line}" for line in lines[first - 1 : last]]
    return "\n".join(lines)
