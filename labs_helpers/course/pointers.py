"""Find the kernel parameters that a line's pointers derive from, by reading the source."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from functools import cache


def parameter_of(file: str, number: int | None, kind: str) -> str:
    """Return the parameter that the tl.load or tl.store (kind) on line `number` of `file` goes through; '' if there
    is none or several."""
    found = {
        name
        for first, last, of, name in _accesses("".join(linecache.getlines(file)))
        if of == kind and first <= (number or 0) <= last
    }
    return found.pop() if len(found) == 1 else ""


@cache
def _accesses(text: str) -> list[tuple[int, int, str, str]]:
    """Return (first line, last line, 'load' or 'store', parameter) of each tl.load and tl.store in the functions of
    `text`."""
    try:
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    except SyntaxError:  # a cell with a magic in it
        return []
    found = []
    for function in functions:
        parameters, assigned = {one.arg for one in function.args.args}, made_of(function)
        for kind in ("load", "store"):
            for call in calls(function, f"tl.{kind}"):
                through = reached([name for place in call.args[:1] for name in names_in(place)], assigned)
                names = [name for name in through & parameters if name.endswith("_ptr")]
                found += [(call.lineno, call.end_lineno or call.lineno, kind, name) for name in names]
    return found


def calls(tree: ast.AST, function: str) -> list[ast.Call]:
    """Return the calls of `function`, such as 'tl.dot'."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == function]


def made_of(tree: ast.AST) -> dict[str, set[str]]:
    """Map each name to the names in the values assigned to it."""
    assigned: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in names_in(target):
                    assigned.setdefault(name, set()).update(names_in(node.value))
    return assigned


def names_in(node: ast.AST) -> list[str]:
    """Return the names in source order."""
    found = [name for name in ast.walk(node) if isinstance(name, ast.Name)]
    return [name.id for name in sorted(found, key=lambda name: (name.lineno, name.col_offset))]


def reached(names: list[str], assigned: Mapping[str, set[str]]) -> set[str]:
    """Return `names` and all names that they derive from."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += assigned.get(name, ())
    return found
