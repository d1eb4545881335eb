"""Compute a submission's points, exercise by exercise, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from labs_helpers.course import scoreboard
from labs_helpers.grading.course_answers import CourseAnswer
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits
from labs_helpers.grading.jails.memory import MEMORY
from labs_helpers.grading.reading.lab_imports import imports_of
from labs_helpers.grading.reading.notebook_file import read_cells
from labs_helpers.grading.reading.own_cells import whole
from labs_helpers.grading.reading.submission import Answer, read_submission
from labs_helpers.grading.verdict import CRASHED, FAILED, REFUSED, RIGHT, TIMEOUT, WRONG, Verdict, verdicts
from labs_helpers.labs import Lab

OPEN, REVIEW = "not attempted", "review"
HIDDEN = "hidden-values"


@dataclass(frozen=True)
class Mark:
    """The result of one exercise.

    points: None if somebody must review the answer first. status: RIGHT, OPEN, REVIEW, or another of `verdict`. reason:
    the check's words, or the reason for a review. flags: oddities of the cell. cases: those that passed. source: the
    answer, with the definitions from its author's other cells that it needs.
    """

    exercise: str
    points: float | None
    most: int
    status: str
    reason: str = ""
    flags: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    source: str = ""


def marks(
    path: Path,
    lab: Lab,
    course_answers: Mapping[str, CourseAnswer],
    seed: int,
    limits: Limits = LIMITS,
    judge: Callable[..., list[Verdict]] = verdicts,
) -> list[Mark]:
    """Return a Mark per exercise of the lab. seed: of the hidden inputs, the same as for the course's answers.
    notebook_file.Unreadable if the file is no notebook."""
    answers = whole(read_submission(path, lab))
    tried = [answer for answer in answers if answer.attempted and not answer.problem]
    told = judge(tried, imports_of(read_cells(lab.path)), limits, seeds=(seed,))
    found = {answer.shipped.id: one for answer, one in zip(tried, told, strict=True)}
    return [_mark(one, found.get(one.shipped.id), course_answers.get(one.shipped.id)) for one in answers]


def _mark(answer: Answer, found: Verdict | None, course_answer: CourseAnswer | None) -> Mark:
    one = answer.shipped
    text = "\n\n".join((*answer.before, answer.source)) if answer.attempted else ""
    blank = Mark(one.id, 0, one.points, OPEN, "not attempted", answer.flags, source=text)
    if answer.problem:
        return replace(blank, status=WRONG, reason=answer.problem)
    if found is None:
        return blank
    told = replace(blank, status=found.status, reason=found.message, cases=found.lines)
    if found.status == FAILED:
        return replace(told, points=None, reason=f"the check itself failed: {found.message}")
    if found.status == REFUSED:
        return replace(told, points=None, status=REVIEW, reason=f"a kernel beyond Triton's language: {found.message}")
    if found.status in (TIMEOUT, CRASHED, MEMORY):
        return _flagged(told, found.status)
    if found.status != RIGHT:
        return _partly(told, found, course_answer)
    if course_answer and (other := course_answer.why_other(found)):
        what = f"right in the cases of its check, and not for inputs that it does not show: {other}"
        return replace(_flagged(told, HIDDEN), status=WRONG, reason=what)
    return replace(told, points=one.points)


def _flagged(mark: Mark, flag: str) -> Mark:
    return replace(mark, flags=(*mark.flags, flag))


def _partly(mark: Mark, found: Verdict, course_answer: CourseAnswer | None) -> Mark:
    """Return the mark with the points of the cases that passed before the wrong one; none if the answer is right
    only for those cases."""
    if not mark.cases or not course_answer:
        return mark
    if not course_answer.partly_right(found):
        cases = f"{len(mark.cases)} of {len(course_answer.cases)} cases"
        what = f"right in {cases} of its check, and for no input that it does not show"
        return replace(_flagged(mark, HIDDEN), reason=what)
    return replace(
        mark, points=scoreboard.points_of(mark.most, scoreboard.WRONG, len(mark.cases), len(course_answer.cases))
    )
