"""Answers that are alike once names, comments, docstrings and annotations are taken away.

An answer is read as the words of its syntax tree: kinds of nodes, names and values. Two answers are compared in runs of
RUN words (as in Schleimer, Wilkerson and Aiken, "Winnowing", 2003), and only in those that say something: what the lab
ships, what is in the course's own answer, and what many of the class write is left out. So a short answer, or one that
follows the text of the exercise, is like no other. A common source, such as a tutorial, looks the same as a copy.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from labs_helpers.course.stub import stub_of

RUN = 10  # words: kinds of nodes, names, values; `x = tl.load(p + i, mask=m)` has 18
# Right answers in tests/ that are written differently share at most 33 runs that the reference has not, and those are
# at most half of either; only answers made of one another share more. It is some four lines of code.
ENOUGH = 60
LIKE = 0.8  # of the runs of either that say something
MANY = 0.04  # of the class, at least FEW students: what so many write, the exercise suggests
FEW = 3
MOST_NODES = 10_000  # of an answer that are compared, the first ones; the longest of the course's own has 1,000
LONG = 120  # words that the reference adds to its stub, some seven lines; below, people come to the same by themselves


@dataclass(frozen=True)
class Pair:
    """Two students whose answers to an exercise are alike. same: nothing else differs. share: of the runs in the answer
    with more of them that the other has too; what the course ships, and what many write, is left out."""

    exercise: str
    one: str
    other: str
    same: bool
    share: float

    @property
    def words(self) -> str:
        if self.same:
            return "the same but for names, comments and annotations"
        return f"{self.share:.0%} of what is neither the course's own nor written by many is the same"


def same_as_reference(source: str, reference: str) -> bool:
    """Whether an answer is the reference but for names, comments, docstrings and annotations. False where the reference
    adds so little to its stub that many write the same. reference: its cell, with the marks around what is asked for
    (course.stub.cell_of)."""
    form, other = _form(source), _form(reference)
    if form is None or other is None or form != other:
        return False
    return len(other) - len(_form(_stub(reference)) or ()) >= LONG


def twins(answers: Mapping[str, Mapping[str, str]], references: Mapping[str, str]) -> list[Pair]:
    """Pairs that are alike, by exercise and the most alike first. answers: exercise → student → source with own cells.
    references: exercise → its cell (course.stub.cell_of), or the stub where there is no other. What is no Python is
    like nothing."""
    found = []
    for exercise, sources in answers.items():
        reference = references.get(exercise, "")
        found += [Pair(exercise, *pair) for pair in _alike(sources, (reference, _stub(reference)))]
    return sorted(found, key=lambda pair: (pair.exercise, not pair.same, -pair.share, pair.one, pair.other))


def _stub(reference: str) -> str:
    try:
        return stub_of(reference)
    except ValueError:  # there are no marks in it
        return ""


def _alike(sources: Mapping[str, str], known: Collection[str]) -> Iterator[tuple[str, str, bool, float]]:
    forms = {text: _form(text) for text in {*sources.values(), *known}}
    shipped = {run for text in known for run in _runs(forms[text] or ())}
    own = {student: _runs(forms[text] or ()) - shipped for student, text in sources.items()}
    writers = Counter(run for runs in own.values() for run in runs)
    most = max(FEW, int(MANY * len(sources)))
    rare = {student: {run for run in runs if 1 < writers[run] <= most} for student, runs in own.items()}
    said = {student: sum(writers[run] <= most for run in runs) for student, runs in own.items()}
    holders = defaultdict(list)
    for student in sorted(rare):
        for run in rare[student]:
            holders[run].append(student)
    shared = Counter(pair for students in holders.values() for pair in combinations(students, 2))
    for (one, other), count in shared.items():
        share = count / max(said[one], said[other])
        if count >= ENOUGH and share >= LIKE:
            yield one, other, forms[sources[one]] == forms[sources[other]], share


def _runs(form: Sequence[str]) -> set[int]:
    """Runs of nodes, with each own name as any other: a variable more does not make the rest another text."""
    words = ["own" if word.startswith(_OWN) else word for word in form]
    return set(map(hash, zip(*(words[start:] for start in range(RUN)), strict=False)))


_OWN = "\0"  # begins the number of a name; no identifier does


def _form(source: str) -> tuple[str, ...] | None:
    """An answer as its nodes in order; its own names are numbers, in the order in which they appear. None of what is
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
    """The name or value of one node, or '', and whether the answer itself gives the name to something. A keyword's and
    an attribute's name stay: they belong to what is called."""
    if isinstance(node, ast.Name):
        return node.id, not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Constant):
        return repr(node.value), False
    if isinstance(node, ast.Attribute):
        return f".{node.attr}", False
    if isinstance(node, ast.keyword):
        return f".{node.arg or '**'}", False
    name = getattr(node, "name", None) or getattr(node, "arg", None)
    return (name, True) if isinstance(name, str) else ("", False)


_SKIPPED = {"annotation", "returns", "type_comment", "ctx", "type_params"}


def _inside(node: ast.AST) -> list[ast.AST]:
    """What is below a node and is compared: no annotation, docstring, import or mark of what a name is there for."""
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
