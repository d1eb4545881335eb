"""Reduce an answer to the words of its syntax tree: kinds of nodes, names and values, without comments, docstrings,
annotations and imports. Its own names become numbers, so that renaming makes no difference."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

RUN = 10  # words: kinds of nodes, names, values; `x = tl.load(p + i, mask=m)` has 18
MOST_NODES = 10_000  # words of an answer that are compared; the longest of the course has 1,000


def runs_of(form: Sequence[str]) -> set[int]:
    """Return runs of nodes in which all own names are equal, so that an extra variable does not change the remaining
    text."""
    words = ["own" if word.startswith(_OWN) else word for word in form]
    return set(map(hash, zip(*(words[start:] for start in range(RUN)), strict=False)))


_OWN = "\0"  # starts the number of a name; no identifier starts with it


def form_of(source: str) -> tuple[str, ...] | None:
    """Return an answer as its nodes in order; its own names are numbers, in the order of appearance. None if it is
    no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes in strings
            waiting: list[ast.AST] = [ast.parse(source)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found, own = list[tuple[str, str]](), set[str]()
    while waiting and len(found) < MOST_NODES:  # a stack: the tree may be deeper than Python recurs
        node = waiting.pop()
        text, given = _text(node)
        found.append((type(node).__name__, text))
        if given:
            own.add(text)
        waiting += reversed(_inside(node))
    numbers: dict[str, str] = {}
    return tuple(
        word
        for kind, text in found
        for word in (kind, numbers.setdefault(text, f"{_OWN}{len(numbers)}") if text in own else text)
        if word
    )


def _text(node: ast.AST) -> tuple[str, bool]:
    """Return the name or value of one node, or '', and whether the answer itself chose the name. Names of keywords
    and attributes stay, because they belong to what is called."""
    if isinstance(node, ast.Name):
        return node.id, not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Constant):
        number = isinstance(node.value, int) and not isinstance(node.value, bool)
        return hex(node.value) if number else repr(node.value), False  # hex has no limit of digits
    if isinstance(node, ast.Attribute):
        return f".{node.attr}", False
    if isinstance(node, ast.keyword):
        return f".{node.arg or '**'}", False
    name = getattr(node, "name", None) or getattr(node, "arg", None)
    return (name, True) if isinstance(name, str) else ("", False)


_SKIPPED = {"annotation", "returns", "type_comment", "ctx", "type_params"}


def _inside(node: ast.AST) -> list[ast.AST]:
    """Return the parts below a node that are compared: no annotation, docstring, import or load/store context."""
    found = list[ast.AST]()
    for name in node._fields:
        value = getattr(node, name, None) if name not in _SKIPPED else None
        if isinstance(value, list):
            found += [part for part in value if isinstance(part, ast.AST) and not _is_left_out(part)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _is_left_out(node: ast.AST) -> bool:
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)  # a docstring, or `...`
    return text or isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)
