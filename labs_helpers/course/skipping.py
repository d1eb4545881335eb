"""Skip the cells that need an open exercise in a notebook whose lab has no references, and print a line instead.

The name of such an exercise is bound to a `Withheld`. A cell ends at the first statement that reads this name, or that
calls a function of the notebook that does. Definitions and imports after it still run, and the other names that the
cell would have bound wait for the exercise as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from labs_helpers.compile.source import plain
from labs_helpers.course.cell_names import DEFINES, assigned, bound, excused, on_ranks, read
from labs_helpers.course.cells import running_shell
from labs_helpers.course.scoreboard import OPEN
from labs_helpers.course.withheld import StillOpen, Withheld
from labs_helpers.course.wrap import wrap

_GUARD = """
try:
    pass
except __import__("labs_helpers.course.withheld", fromlist=["StillOpen"]).StillOpen as error:
    __import__("labs_helpers.course.skipping", fromlist=["stopped"]).stopped(error, {names!r})
"""
_STOP = """__import__("labs_helpers.course.skipping", fromlist=["stopped"]).stopped(
    __import__("labs_helpers.course.withheld", fromlist=["StillOpen"]).StillOpen{error!r}, {names!r})
"""


def skip_cells() -> None:
    """Skip such cells from the next cell on in this notebook. A second call has no effect."""
    shell = running_shell()
    if shell is not None and not any(isinstance(one, Skipper) for one in shell.ast_transformers):
        shell.ast_transformers.append(Skipper(shell.user_ns))


class Skipper(ast.NodeTransformer):
    """Transforms each cell for IPython. names: those of the notebook. on_ranks: names that wait in the processes of
    `%%px`."""

    def __init__(self, names: dict[str, Any]):
        self.names, self.on_ranks = names, dict[str, Withheld]()

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.Module) or excused(node) or all(isinstance(one, DEFINES) for one in node.body):
            return node
        own = set[str]()
        for place, statement in enumerate(node.body):
            if open_one := next(self._waits(statement, own), None):
                return self._cut(node, place, open_one)
            for body in on_ranks(statement):
                for name in bound(body):
                    self.on_ranks.pop(name, None)
            own |= bound(ast.Module([statement], []))
        return _guarded(node)

    def _cut(self, node: ast.Module, place: int, open_one: Withheld) -> ast.Module:
        """Return the cell up to the first statement that must wait, and the definitions after it."""
        rest = ast.Module(node.body[place:], [])
        for statement in rest.body:
            for body in on_ranks(statement):
                self.on_ranks |= dict.fromkeys(bound(body), open_one)
        stop = ast.parse(_STOP.format(error=open_one.error().args_of(), names=assigned(rest))).body
        node.body = [*node.body[:place], *(one for one in rest.body if isinstance(one, DEFINES)), *stop]
        return _guarded(node)

    def _waits(self, statement: ast.stmt, own: set[str]) -> Iterator[Withheld]:
        """Return the open exercises that a statement needs. own: names that the cell bound before it."""
        for name in read(ast.Module([statement], [])) - own:
            if found := waiting(self.names.get(name)):
                yield found
        for part in ast.walk(statement):
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                module = self.names.get(part.value.id)
                value = vars(module).get(part.attr) if isinstance(module, ModuleType) else None
                if isinstance(value, Withheld):
                    yield value
            if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):  # view["losses"]
                if found := self.on_ranks.get(part.slice.value):  # type: ignore[arg-type]
                    yield found
        for body in on_ranks(statement):
            for name in read(body) - bound(body):
                if found := self.on_ranks.get(name) or waiting(self.names.get(name)):
                    yield found


def waiting(value: Any, seen: frozenset[int] = frozenset()) -> Withheld | None:
    """Return the open exercise that a value of the notebook stands for, or that one of its functions reads."""
    if isinstance(value, Withheld):
        return value
    function = plain(value) if callable(value) or hasattr(value, "fn") else None
    if not isinstance(function, FunctionType) or function.__module__ != "__main__" or id(function) in seen:
        return None
    found = (waiting(function.__globals__.get(name), seen | {id(function)}) for name in _names_in(function.__code__))
    return next(filter(None, found), None)


def stopped(error: StillOpen, names: list[str]) -> None:
    """Print that the cell was skipped, and make `names`, which it would have bound, wait."""
    print(wrap(f"{OPEN} skipped: {error}"))
    recorded: dict[str, Any] | None = {} if error.reference else None
    if (shell := running_shell()) is not None:
        shell.user_ns.update({name: Withheld(error.exercise, error.name, recorded) for name in names})


def _guarded(node: ast.Module) -> ast.Module:
    """Wrap the cell in a `try` that ends it if a function that it calls needs an open exercise. A last expression
    stays last, because IPython shows its value."""
    (guard,) = ast.parse(_GUARD.format(names=assigned(node))).body
    assert isinstance(guard, ast.Try)
    last = node.body[-1]
    guard.body = list(node.body)
    body: list[ast.stmt] = [guard]
    if isinstance(last, ast.Expr):
        (empty, shown) = ast.parse("_shown = None\n_shown").body
        assert isinstance(empty, ast.Assign)
        guard.body[-1] = ast.copy_location(ast.Assign([ast.Name("_shown", ast.Store())], last.value), last)
        body = [empty, guard, ast.copy_location(shown, last)]
    return ast.fix_missing_locations(ast.Module(body, node.type_ignores))


def _names_in(code: Any) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            yield from _names_in(constant)
