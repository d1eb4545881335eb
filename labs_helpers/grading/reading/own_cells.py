"""Find the definitions in its author's other cells that an answer reads, and the definitions that these read."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property

from labs_helpers.grading.reading.submission import Answer
from labs_helpers.grading.reading.trials import without_trials, without_unread_imports

MOST_BROUGHT = 50_000  # characters of other cells for one answer; an own helper has some 1,000


def whole(answers: Iterable[Answer]) -> list[Answer]:
    """Return each answer with the definitions that it needs from its author's other cells, and without code that
    only tries it out."""
    cells = OwnCells()
    return [_whole(answer, cells) for answer in answers]


def _whole(answer: Answer, cells: OwnCells) -> Answer:
    if answer.problem or not answer.source:
        return answer
    try:
        source = without_trials(answer.source)
        before = cells.needed(answer.before, source)
        read = set[str]().union(*(names_read(ast.parse(text)) for text in (source, *before)))
        source = without_unread_imports(source, read)
    except (RecursionError, ValueError):  # nested so deeply, or of such numbers, that it cannot be written out again
        return replace(answer, before=(), problem="the notebook's own cells are nested too deeply to be read")
    if (size := sum(map(len, before))) > MOST_BROUGHT:
        said = f"it needs {size:,} characters of the notebook's own cells; more than {MOST_BROUGHT:,} are not read"
        return replace(answer, before=(), problem=said)
    return replace(answer, source=source, before=before)


@dataclass(frozen=True)
class _Statement:
    """binds, reads: names."""

    binds: frozenset[str]
    reads: frozenset[str]
    node: ast.stmt

    @cached_property
    def text(self) -> str:
        return ast.unparse(self.node)


class OwnCells:
    """A notebook's own cells, each parsed once."""

    def __init__(self) -> None:
        self._statements = cache(_statements)

    def needed(self, before: Iterable[str], source: str) -> tuple[str, ...]:
        """Return the statements in `before`, in order, that bind a name which `source` or another of them reads.

        Anything else in such cells, such as a trial or a plot, is not part of the answer.
        """
        statements = [one for cell in before for one in self._statements(cell)]
        binding: dict[str, list[int]] = {}
        for number, one in enumerate(statements):
            for name in one.binds:
                binding.setdefault(name, []).append(number)
        kept, looked_up, waiting = set[int](), set[str](), names_read(ast.parse(source))
        while waiting:
            name = waiting.pop()
            looked_up.add(name)
            for number in binding.pop(name, ()):
                if number not in kept:
                    kept.add(number)
                    waiting |= statements[number].reads - looked_up
        return tuple(statements[number].text for number in sorted(kept))


def _statements(cell: str) -> list[_Statement]:
    nodes = ast.parse(cell).body
    found = [_Statement(frozenset(names_bound(node)), frozenset(names_read(node)), node) for node in nodes]
    return [one for one in found if one.binds]


def names_bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds or changes, including inside `if`, `try`, `with` and loops."""
    found, left = set[str](), list[ast.AST]([statement])
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif not isinstance(node, ast.Lambda | ast.comprehension):
            own = [getattr(node, name, None) for name in ("target", "optional_vars")]
            targets = [one for one in (*getattr(node, "targets", ()), *own) if one]
            found |= {part.id for one in targets for part in ast.walk(one) if isinstance(part, ast.Name)}
            left += ast.iter_child_nodes(node)
    return found


def names_read(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
