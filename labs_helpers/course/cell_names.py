"""The names that a notebook's cell reads and binds, as its syntax tree shows them."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator
from contextlib import suppress

DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_CHANGE = ("append", "extend", "insert", "update", "add", "setdefault")
_NEVER = ("check", "reveal")  # what they are called with may be open


def excused(node: ast.Module) -> bool:
    """Whether the cell is a check, a reveal or a summary."""
    calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    heads = [func.value if isinstance(func, ast.Attribute) else func for func in calls]
    return len(node.body) == 1 and any(isinstance(head, ast.Name) and head.id in _NEVER for head in heads)


def on_ranks(node: ast.AST) -> Iterator[ast.Module]:
    """What a cell, or a statement, has the processes of `%%px` run."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "run_cell_magic":
            magic, _, body = (getattr(one, "value", "") for one in part.args)
            if magic == "px":
                with suppress(SyntaxError):
                    yield ast.parse(str(body))


def read(node: ast.Module) -> set[str]:
    """The names that the cell reads of the notebook, not those that it has bound itself by then."""
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
    """The names of the notebook that a statement reads, inside its functions too."""
    tables = [symtable.symtable(ast.unparse(statement), "cell", "exec")]
    found = {one.get_name() for one in tables[0].get_symbols() if one.is_referenced()}
    while tables := [inner for table in tables for inner in table.get_children()]:
        found |= {one.get_name() for table in tables for one in table.get_symbols() if one.is_global()}
    return found


def bound(node: ast.Module) -> set[str]:
    """All names of the notebook that the cell binds."""
    table = symtable.symtable(ast.unparse(node), "cell", "exec")
    return {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}


def assigned(node: ast.Module) -> list[str]:
    """What the cell makes of names: those that it binds, without definitions and imports, and those that it changes."""
    made = ast.Module([one for one in node.body if not isinstance(one, DEFINES)], [])
    changed = {base for part in ast.walk(made) if (base := _changed(part))}
    return sorted(bound(made) | changed)


def _changed(node: ast.AST) -> str:
    """'table' of `table[name] = …` and of `table.update(…)`; '' of what changes no name's value."""
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
        base = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGE:
        base = node.func.value
    else:
        return ""
    return base.id if isinstance(base, ast.Name) else ""
