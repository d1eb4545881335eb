"""A submission's points, exercise by exercise, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from labs_helpers.grading.cases import partial_points
from labs_helpers.grading.course_answers import CourseAnswer, own_answers
from labs_helpers.grading.hidden_values import hidden_values
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits
from labs_helpers.grading.jails.memory import MEMORY
from labs_helpers.grading.reading.lab_imports import imports_of
from labs_helpers.grading.reading.notebook_file import read_cells
from labs_helpers.grading.reading.own_cells import whole
from labs_helpers.grading.reading.submission import Answer, read_submission
from labs_helpers.grading.trust.plain_answer import not_in_vocabulary
from labs_helpers.grading.trust.vocabulary import Vocabulary, vocabulary
from labs_helpers.grading.verdict import CRASHED, FAILED, REFUSED, RIGHT, TIMEOUT, WRONG, Verdict, verdicts
from labs_helpers.labs import LABS, Lab

OPEN, REVIEW = "not attempted", "review"
HIDDEN, UNVERIFIED = "hidden-values", "cases-unverified"


@dataclass(frozen=True)
class Mark:
    """points: None where somebody has to look first. status: RIGHT, OPEN, REVIEW, or what `verdict` says else. reason:
    the check's words, or what to look at. flags: what is odd about the cell. cases: that passed. source: the answer,
    with what it needs of its author's other cells."""

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
    """A Mark per exercise of the lab. seed: of the hidden inputs, the same as for the course's answers.
    notebook_file.Unreadable where the file is no notebook."""
    imports = imports_of(read_cells(lab.path))
    answers = whole(read_submission(path, lab))
    tried = [answer for answer in answers if answer.attempted and not answer.problem]
    far = {one for one, answer in course_answers.items() if answer.far}
    strange = {
        one.shipped.id: not_in_vocabulary(one.source, words_of(one.shipped.id), one.before)
        if one.shipped.id not in far
        else []
        for one in tried
    }
    plain = [answer for answer in tried if not strange[answer.shipped.id]]
    found: dict[str, Verdict] = {}
    for together in ([plain] if plain else []) + [[answer] for answer in tried if strange[answer.shipped.id]]:
        told = judge(together, imports, limits, far=far)
        found |= {answer.shipped.id: one for answer, one in zip(together, told, strict=True)}
    asked = [
        answer
        for answer in tried
        if (one := answer.shipped.id) in course_answers
        and (found[one].status == RIGHT or (found[one].status == WRONG and found[one].lines and not strange[one]))
    ]
    odd = {one for one, why in strange.items() if why}
    for one, told_of_values in hidden_values(asked, own_answers(lab), imports, limits, seed, judge, odd, far).items():
        found[one] = _with_values(found[one], told_of_values)
    return [
        _mark(one, found.get(one.shipped.id), strange.get(one.shipped.id, []), course_answers.get(one.shipped.id))
        for one in answers
    ]


def _with_values(found: Verdict, told: Verdict) -> Verdict:
    """A check's verdict, and what became of the hidden inputs; of their words nothing but the status is taken."""
    if found.status == RIGHT and told.status in (TIMEOUT, CRASHED, MEMORY):
        return replace(
            found, status=told.status, message="right in its check, and not for inputs that it does not show"
        )
    return replace(found, values=told.values, raised=told.raised)


def _mark(answer: Answer, found: Verdict | None, strange: list[str], course_answer: CourseAnswer | None) -> Mark:
    one = answer.shipped
    blank = Mark(one.id, 0, one.points, OPEN, "not attempted", answer.flags, source=_text(answer))
    if answer.problem:
        return replace(blank, status=WRONG, reason=answer.problem)
    if found is None:
        return blank
    told = replace(blank, status=found.status, reason=found.message, cases=found.lines)
    known = course_answer.cases if course_answer else ()
    if strange and found.status != RIGHT:  # the answer could have written it, and the course's own answers into it
        said = f"what its check said is not shown, because {strange[0]}; `make check` says it at home"
        found = replace(found, message=said)
        told = replace(told, reason=said, cases=tuple(line for line in found.lines if line in known))
    if found.status == FAILED:
        return replace(told, points=None, reason=f"the check itself failed: {found.message}")
    if found.status == REFUSED:
        return replace(told, points=None, status=REVIEW, reason=f"a kernel beyond Triton's language: {found.message}")
    if found.status in (TIMEOUT, CRASHED, MEMORY):
        return _flagged(told, found.status)
    if found.status != RIGHT:
        return _partly(told, found, strange, course_answer)
    if course_answer and (other := course_answer.why_other(found)):
        what = "right in the cases of its check, and not for inputs that it does not show"
        what += f": {other}" if found.raised or not strange else ""  # its values could be made to tell the inputs
        return replace(_flagged(told, HIDDEN), status=WRONG, reason=what)
    if strange:
        return replace(told, points=None, status=REVIEW, reason=f"right, if its check was not deceived: {strange[0]}")
    return replace(told, points=one.points)


def _text(answer: Answer) -> str:
    return "\n\n".join((*answer.before, answer.source)) if answer.attempted else ""


def _flagged(mark: Mark, flag: str) -> Mark:
    return replace(mark, flags=(*mark.flags, flag))


def _partly(mark: Mark, found: Verdict, strange: list[str], course_answer: CourseAnswer | None) -> Mark:
    """With the points of the cases that were right before the one that is not; an answer that could have said so itself
    has none of them, nor one that is right for those cases alone."""
    if not mark.cases or not course_answer:
        return mark
    if strange:
        return _flagged(mark, UNVERIFIED)
    if not course_answer.partly_right(found):
        cases = f"{len(mark.cases)} of {len(course_answer.cases)} cases"
        what = f"right in {cases} of its check, and for no input that it does not show"
        return replace(_flagged(mark, HIDDEN), reason=what)
    return replace(mark, points=partial_points(mark.most, len(mark.cases), len(course_answer.cases)))


@cache
def words_of(exercise: str) -> Vocabulary:
    """The vocabulary of an exercise: of its reference, and of a transfer exercise's where the course's tests are."""
    lab = next(lab for lab in LABS if lab.number == exercise.partition("/")[0])
    ids = [one.id for one in lab.exercises()]
    earlier = [one.trial.__name__ for one in lab.exercises()[: ids.index(exercise)]]
    return vocabulary(own_answers(lab).get(exercise, ""), earlier)
