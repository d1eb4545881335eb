"""Find the names that a notebook's cell reads and binds, from its syntax tree."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator
from contextlib import suppress

DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_CHANGE = ("append", "extend", "insert", "update", "add", "setdefault")
_NEVER = ("check", "reveal")  # their arguments may be open


def excused(node: ast.Module) -> bool:
    """Tell whether the cell is a check, a reveal or a summary."""
    calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    heads = [func.value if isinstance(func, ast.Attribute) else func for func in calls]
    return len(node.body) == 1 and any(isinstance(head, ast.Name) and head.id in _NEVER for head in heads)


def on_ranks(node: ast.AST) -> Iterator[ast.Module]:
    """Return the source that a cell, or a statement, runs in the processes of `%%px`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "run_cell_magic":
            magic, _, body = (getattr(one, "value", "") for one in part.args)
            if magic == "px":
                with suppress(SyntaxError):
                    yield ast.parse(str(body))


def read(node: ast.Module) -> set[str]:
    """Return the notebook's names that the cell reads before it binds them itself."""
    if excused(node):
        return set()
    found, own = set[str](), set[str]()
    for statement in node.body:
        simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr)
        binds = bound(ast.Module([statement], []))
        found |= referenced(statement) - own - (set() if simple else binds)
        own |= binds
    return found


def referenced(statement: ast.stmt) -> set[str]:
    """Return the notebook's names that a statement reads, including inside its functions."""
    tables = [symtable.symtable(ast.unparse(statement), "cell", "exec")]
    found = {one.get_name() for one in tables[0].get_symbols() if one.is_referenced()}
    while tables := [inner for table in tables for inner in table.get_children()]:
        found |= {one.get_name() for table in tables for one in table.get_symbols() if one.is_global()}
    return found


def bound(node: ast.Module) -> set[str]:
    """Return all names of the notebook that the cell binds."""
    table = symtable.symtable(ast.unparse(node), "cell", "exec")
    return {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}


def assigned(node: ast.Module) -> list[str]:
    """Return the names that the cell assigns or changes, without definitions and imports."""
    made = ast.Module([one for one in node.body if not isinstance(one, DEFINES)], [])
    changed = {base for part in ast.walk(made) if (base := _changed(part))}
    return sorted(bound(made) | changed)


def _changed(node: ast.AST) -> str:
    """Return 'table' for `table[name] = …` and for `table.update(…)`; '' for a statement that changes no name's
    value."""
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
        base = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGE:
        base = node.func.value
    else:
        return ""
    return base.id if isinstance(base, ast.Name) else ""
