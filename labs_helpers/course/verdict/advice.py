"""What to try where no cause fits: print a block of the kernel, by the name that it has there."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from contextlib import suppress

import torch

from labs_helpers.compile.launches import Launch
from labs_helpers.compile.source import source_of


def print_it(launches: Iterable[Launch], result: torch.Tensor) -> str:
    """Advice with a place for {where}. It names the block that a kernel of `launches` stores to `result`, as the kernel
    calls it, and none where the text does not tell."""
    shown = "print(…) in the kernel shows its blocks while a check runs."
    for launch in launches:
        names = [name for name, tensor in launch.tensors().items() if _shares(tensor, result)]
        with suppress(OSError, SyntaxError):
            if names and (block := _stored(ast.parse(source_of(launch.kernel)), names[0])):
                shown = f'print("{block}", {block}) in the kernel shows a block while a check runs.'
    return "work out {where} by hand; " + shown


def _shares(tensor: torch.Tensor, result: object) -> bool:
    if not isinstance(result, torch.Tensor):
        return False
    return tensor.untyped_storage().data_ptr() == result.untyped_storage().data_ptr()


def _stored(tree: ast.Module, pointer: str) -> str:
    """The variable that the value of a tl.store through the parameter `pointer` begins with; '' where there is none."""
    assigned: dict[str, set[str]] = {}  # name → what it is made of
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in _names(target):
                    assigned.setdefault(name, set()).update(_names(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.store" and len(node.args) > 1:
            place, value, *_ = node.args
            elsewhere = [*_names(place), *(name for keyword in node.keywords for name in _names(keyword.value))]
            if pointer in _reached(_names(place), assigned):
                return next((name for name in _names(value) if name in assigned and name not in elsewhere), "")
    return ""


def _names(node: ast.AST) -> list[str]:
    """In the order of the text."""
    found = [name for name in ast.walk(node) if isinstance(name, ast.Name)]
    return [name.id for name in sorted(found, key=lambda name: (name.lineno, name.col_offset))]


def _reached(names: list[str], assigned: dict[str, set[str]]) -> set[str]:
    """`names` and everything that they are made of."""
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting += assigned.get(name, ())
    return reached
