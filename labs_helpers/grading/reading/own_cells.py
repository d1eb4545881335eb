"""What an answer needs of the cells that its author wrote besides: definitions that it reads, and theirs."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from labs_helpers.grading.reading.submission import Answer


def whole(answer: Answer) -> Answer:
    """With what it needs of its author's other cells, and no more."""
    if answer.problem or not answer.source:
        return answer
    try:
        return replace(answer, before=needed(answer.before, answer.source))
    except RecursionError:  # made to be nested so deeply that it cannot be written out again
        return replace(answer, problem="the notebook's own cells are nested too deeply")


def needed(before: Iterable[str], source: str) -> tuple[str, ...]:
    """The statements in `before`, in order, that bind a name which `source` or another of them reads.

    What else stands in such cells, a trial or a plot, is no part of the answer.
    """
    statements = [node for cell in before for node in ast.parse(cell).body if _bound(node)]
    read, kept = _read(ast.parse(source)), set[int]()
    while more := {number for number, node in enumerate(statements) if number not in kept and _bound(node) & read}:
        kept |= more
        for number in more:
            read |= _read(statements[number])
    return tuple(ast.unparse(statements[number]) for number in sorted(kept))


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return set()


def _read(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
