"""An answer's cell without what tries it out: calls and asserts beside the definitions, and imports that nothing reads.

These lines become comments, so that others keep their numbers. What is left is both judged and run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable


def without_trials(source: str) -> str:
    """Without asserts and bare expressions at the top level, such as `print(f(3))`. A call of a method of a value that
    the cell makes, as `table.append(3)`, stays: the answer may need it."""
    tree = ast.parse(source)
    values = {
        part.id
        for node in tree.body
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
    }
    return _replaced(source, {at: None for at, node in enumerate(tree.body) if _tries(node, values)})


def without_unread_imports(source: str, read: Iterable[str]) -> str:
    """Without imports at the top level of names that are not in `read`."""
    new: dict[int, ast.stmt | None] = {}
    for at, node in enumerate(ast.parse(source).body):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module == "__future__" or node.names[0].name == "*"):
            continue
        kept = [alias for alias in node.names if (alias.asname or alias.name).partition(".")[0] in read]
        if len(kept) < len(node.names):
            left = (
                ast.ImportFrom(node.module, kept, node.level) if isinstance(node, ast.ImportFrom) else ast.Import(kept)
            )
            new[at] = left if kept else None
    return _replaced(source, new)


def _tries(node: ast.stmt, values: set[str]) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Expr) or isinstance(node.value, ast.Constant):
        return False
    root: ast.AST = node.value
    method = isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute)
    while isinstance(root, ast.Call | ast.Attribute | ast.Subscript):
        root = root.func if isinstance(root, ast.Call) else root.value
    return not (method and isinstance(root, ast.Name) and root.id in values)


def _replaced(source: str, new: dict[int, ast.stmt | None]) -> str:
    """The source with statements replaced, or commented out. Unchanged where `;` joins some."""
    if not new:
        return source
    tree, lines = ast.parse(source), source.split("\n")
    for at, other in new.items():
        first, last = tree.body[at].lineno - 1, tree.body[at].end_lineno or 0
        lines[first:last] = [f"# {line}" for line in lines[first:last]]
        if other:
            lines[first] = f"{ast.unparse(other)}  {lines[first]}"
    body = [new.get(at, node) for at, node in enumerate(tree.body)]
    wanted = ast.Module([node for node in body if node is not None], [])
    text = "\n".join(lines)
    try:
        return text if ast.dump(ast.parse(text)) == ast.dump(wanted) else source
    except SyntaxError:
        return source
