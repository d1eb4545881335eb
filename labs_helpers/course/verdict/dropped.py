"""Find a value that an answer computes and never reads: `p.grad.div(n)` as a statement, or a name that is never
used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from labs_helpers.compile.source import reachable, source_of
from labs_helpers.course.stub import BEGIN, END

NEW = {  # methods and functions of torch that return a new object and change nothing
    "abs", "bfloat16", "cat", "clamp", "clone", "contiguous", "div", "double", "flatten", "float", "half", "maximum",
    "mean", "minimum", "mul", "neg", "permute", "reshape", "sqrt", "square", "stack", "sub", "sum", "to", "transpose",
    "true_divide", "type", "unsqueeze", "view", "where", "zeros_like",
}  # fmt: skip
IN_PLACE = {"abs", "clamp", "div", "mul", "neg", "sqrt", "square", "sub"}


def dropped(student: Any, causes: tuple[str, ...], differ: bool) -> tuple[str, ...]:
    """Return the causes of a wrong answer, preceded by a sentence on the first unused value. If values differ and
    that result is not even assigned, the sentence is the only cause; an assigned name may have been meant for
    something else."""
    try:
        lines = [line for part in reachable(student).values() for line in _unused(source_of(part))]
    except (OSError, SyntaxError, AttributeError):
        return causes
    for statement, name in lines[:1]:
        more = f": {name}_() works in place" * (name in IN_PLACE)
        more = more or ": /= divides in place" * (name == "/")
        told = f"nothing uses the result of `{ast.unparse(statement)}`, which changes nothing else{more}"
        if told in causes:  # described before
            return causes
        return (told,) if differ and isinstance(statement, ast.Expr) else (told, *causes[:1])
    return causes


def _unused(text: str) -> Iterator[tuple[ast.stmt, str]]:
    """Yield each statement with an unused result and the name of the function that computes it, except those of the
    stub."""
    tree, lines = ast.parse(text), text.splitlines()
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    shared = {name for node in ast.walk(tree) if isinstance(node, ast.Nonlocal | ast.Global) for name in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.Assign) and not _of_stub(lines, node.lineno):
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if len(names) == len(targets) and not set(names) & (read | shared) and (made := _new(node.value)):
                yield node, made


def _of_stub(lines: list[str], number: int) -> bool:
    """Tell whether a line is outside the marked places for an answer, if the source has marks."""
    marks = [mark for mark in (BEGIN, END) for line in lines[:number] if mark in line]
    return any(BEGIN in line for line in lines) and marks.count(BEGIN) == marks.count(END)


def _new(value: ast.expr) -> str:
    if isinstance(value, ast.BinOp):
        named = isinstance(value.left, ast.Name | ast.Attribute | ast.Subscript)  # /= needs something to assign to
        return "/" if isinstance(value.op, ast.Div) and named else "operator"
    called = value.func if isinstance(value, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) and called.attr in NEW else ""
