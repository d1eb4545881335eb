"""A value that an answer computes and nothing reads: `p.grad.div(n)` by itself, or a name that is never used again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from labs_helpers.compile.source import reachable, source_of

NEW = {  # functions and methods that return something new, and change nothing
    "abs", "bfloat16", "cat", "clamp", "clone", "contiguous", "div", "double", "flatten", "float", "half", "maximum",
    "mean", "minimum", "mul", "neg", "permute", "reshape", "sqrt", "square", "stack", "sub",
    "sum", "to", "transpose", "true_divide", "type", "unsqueeze", "view", "where", "zeros_like",
}  # fmt: skip
IN_PLACE = {"clamp", "div", "mul", "neg", "sqrt", "square", "sub", "abs"}


def dropped(student: Any) -> str:
    """Of the first such line a sentence; '' where there is none, or the text is not known."""
    try:
        trees = [ast.parse(source_of(part)) for part in reachable(student).values()]
    except (OSError, SyntaxError, AttributeError):
        return ""
    return next((_told(text, name) for tree in trees for text, name in _unused(tree)), "")


def _told(text: str, name: str) -> str:
    more = f": {name}_() changes what it is called on" * (name in IN_PLACE)
    more = more or ": /= and its like change a tensor in place" * (name == "operator")
    return f"nothing uses the result of `{text}`, which changes nothing else{more}"


def _unused(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The text of each line whose result is not used, and the name of what makes it."""
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    shared = {name for node in ast.walk(tree) if isinstance(node, ast.Nonlocal | ast.Global) for name in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if len(names) == len(targets) and not set(names) & (read | shared) and (made := _new(node.value)):
                yield ast.unparse(node), made


def _new(value: ast.expr) -> str:
    if isinstance(value, ast.BinOp):
        return "operator"
    called = value.func if isinstance(value, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else ""
    return name if name in NEW else ""
