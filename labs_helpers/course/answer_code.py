"""Read a notebook's cells without running them: the code of an answer, and the predictions."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path

from labs_helpers.course.cell_names import referenced

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def code_cells(notebook: Path) -> list[tuple[str, str]]:
    """Return (grade_id or '', Python source) of each code cell, with magics translated. Raises ValueError for a
    damaged notebook."""
    from IPython.core.inputtransformer2 import TransformerManager

    from labs_helpers.course.own_copies import read  # nbformat, which first aid may find missing

    found = []
    for cell in read(notebook).cells:
        if cell.cell_type == "code":
            text = cell.source
            try:
                text = TransformerManager().transform_cell(text)
            except SyntaxError:  # it stays unchanged, and `_parsed` skips it
                pass
            found.append((cell.metadata.get("nbgrader", {}).get("grade_id") or "", text))
    return found


def key_of(name: str, cells: Iterable[str], others: Collection[str] = ()) -> str:
    """Return a hash of the answer `name` as these cells define it last; '' if none defines it.

    The answer includes its function, the functions and classes of the notebook that it refers to, and the values that
    the same cells assign to names used by these. Comments and layout do not count. others: names of other exercises'
    answers, which have their own hashes.
    """
    functions: dict[str, tuple[ast.stmt, dict[str, ast.stmt]]] = {}
    for body in map(_parsed, cells):
        values = {t.id: node for node in body if isinstance(node, ast.Assign) for t in node.targets if _is_name(t)}
        functions |= {node.name: (node, values) for node in body if isinstance(node, _FUNCTIONS)}
    texts: dict[str, str] = {}
    waiting = {name} & set(functions)
    while waiting:
        node, values = functions[one := waiting.pop()]
        used = referenced(node) - {one}
        texts[one] = "\n".join(map(ast.unparse, [*(values[v] for v in sorted(used & set(values))), node]))
        waiting |= (used & set(functions)) - set(texts) - set(others)
    text = "\n".join(texts[one] for one in sorted(texts))
    return hashlib.sha256(text.encode()).hexdigest()[:16] if texts else ""


def predictions_in(cells: Iterable[str]) -> dict[str, bool]:
    """Map the question of each `predict("question", value)` in these cells to whether `value` differs from `None`."""
    calls = (node for body in map(_parsed, cells) for part in body for node in ast.walk(part) if _asks(node))
    return {node.args[0].value: ast.unparse(node.args[1]) != "None" for node in calls}  # type: ignore[attr-defined]


def _asks(node: ast.AST) -> bool:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "predict"
    return named and len(node.args) == 2 and isinstance(getattr(node.args[0], "value", None), str)  # type: ignore


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def _parsed(cell: str) -> list[ast.stmt]:
    try:
        return ast.parse(cell).body
    except (SyntaxError, ValueError, RecursionError):
        return []
