"""A submission's points, exercise by exercise, each with its reason."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from labs_helpers.course.stub import cell_of
from labs_helpers.grading.jail import LIMITS, Limits
from labs_helpers.grading.lab_imports import imports_of
from labs_helpers.grading.notebook_file import read_cells
from labs_helpers.grading.own_cells import whole
from labs_helpers.grading.plain_answer import beyond
from labs_helpers.grading.submission import Answer, read_submission
from labs_helpers.grading.verdict import FAILED, RIGHT, WRONG, Verdict, verdicts
from labs_helpers.grading.vocabulary import Vocabulary, vocabulary
from labs_helpers.labs import LABS, Lab

OPEN, REVIEW = "not attempted", "review"


@dataclass(frozen=True)
class Mark:
    """points: None where somebody has to look first. status: RIGHT, OPEN, REVIEW, or what `verdict` says else. reason:
    the check's words, or what to look at. flags: what is odd about the cell. cases: that passed."""

    exercise: str
    points: float | None
    most: int
    status: str
    reason: str = ""
    flags: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()


def marks(
    path: Path,
    lab: Lab,
    limits: Limits = LIMITS,
    judge: Callable[..., list[Verdict]] = verdicts,
) -> list[Mark]:
    """A Mark per exercise of the lab. notebook_file.Unreadable where the file is no notebook."""
    imports = imports_of(read_cells(lab.path))
    answers = [whole(answer) for answer in read_submission(path, lab)]
    tried = [answer for answer in answers if answer.attempted and not answer.problem]
    strange = {one.shipped.id: beyond("\n".join((*one.before, one.source)), words_of(one.shipped.id)) for one in tried}
    plain = [answer for answer in tried if not strange[answer.shipped.id]]
    found: dict[str, Verdict] = {}
    for together in ([plain] if plain else []) + [[answer] for answer in tried if strange[answer.shipped.id]]:
        told = judge(together, imports, limits)
        found |= {answer.shipped.id: one for answer, one in zip(together, told, strict=True)}
    return [_mark(one, found.get(one.shipped.id), strange.get(one.shipped.id, [])) for one in answers]


def _mark(answer: Answer, found: Verdict | None, strange: list[str]) -> Mark:
    one = answer.shipped
    blank = Mark(one.id, 0, one.points, OPEN, "not attempted", answer.flags)
    if answer.problem:
        return replace(blank, status=WRONG, reason=answer.problem)
    if found is None:
        return blank
    told = replace(blank, status=found.status, reason=found.message, cases=found.lines)
    if found.status == FAILED:
        return replace(told, points=None, reason=f"the check itself failed: {found.message}")
    if found.status != RIGHT:
        return told
    if strange:
        return replace(told, points=None, status=REVIEW, reason=f"right, if its check was not deceived: {strange[0]}")
    return replace(told, points=one.points)


@cache
def words_of(exercise: str) -> Vocabulary:
    """The vocabulary of an exercise: of its reference, and of a transfer exercise's where the course's tests are."""
    lab = next(lab for lab in LABS if lab.number == exercise.partition("/")[0])
    earlier: list[str] = []
    for one in lab.exercises():
        name = one.trial.__name__
        if one.id != exercise:
            earlier.append(name)
            continue
        reference = one.reference
        if reference is None:
            try:
                reference = getattr(importlib.import_module(lab.transfer), name)
            except ModuleNotFoundError:
                return vocabulary("", earlier)
        return vocabulary(cell_of(reference), earlier)
    raise ValueError(f"there is no exercise {exercise}")
