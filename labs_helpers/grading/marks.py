"""A submission's points, exercise by exercise, each with its reason."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from labs_helpers.course.stub import cell_of
from labs_helpers.grading.jail import LIMITS, Limits
from labs_helpers.grading.notebook_file import read_cells
from labs_helpers.grading.own_cells import needed
from labs_helpers.grading.plain_answer import beyond
from labs_helpers.grading.submission import Answer, read_submission
from labs_helpers.grading.verdict import FAILED, RIGHT, Verdict, imports_of, verdict
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
    judge: Callable[..., Verdict] = verdict,
) -> list[Mark]:
    """A Mark per exercise of the lab. notebook_file.Unreadable where the file is no notebook."""
    imports = imports_of(read_cells(lab.path))
    return [_mark(answer, lab, lambda one: judge(one, imports, limits)) for answer in read_submission(path, lab)]


def _mark(answer: Answer, lab: Lab, judge: Callable[[Answer], Verdict]) -> Mark:
    one = answer.shipped
    blank = Mark(one.id, 0, one.points, OPEN, "not attempted", answer.flags)
    if answer.problem:
        return replace(blank, status="wrong", reason=answer.problem)
    if not answer.attempted:
        return blank
    whole = replace(answer, before=needed(answer.before, answer.source))
    found = judge(whole)
    told = replace(blank, status=found.status, reason=found.message, cases=found.lines)
    if found.status == FAILED:
        return replace(told, points=None, reason=f"the check itself failed: {found.message}")
    if found.status != RIGHT:
        return told
    strange = beyond("\n".join((*whole.before, whole.source)), words_of(lab.number, one.id))
    if strange:
        return replace(told, points=None, status=REVIEW, reason=f"right, if its check was not deceived: {strange[0]}")
    return replace(told, points=one.points)


@cache
def words_of(number: str, exercise: str) -> Vocabulary:
    """The vocabulary of an exercise: of its reference, and of a transfer exercise's where the course's tests are."""
    lab = next(lab for lab in LABS if lab.number == number)
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
    raise ValueError(f"lab {number} has no exercise {exercise}")
