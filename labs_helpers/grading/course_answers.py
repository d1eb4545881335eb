"""What a lab's own answers give in a jail on this machine: the cases of each check, and the values of hidden inputs.

They are graded first, so that where a check does not work nobody gets a zero for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labs_helpers.grading.cases import own_answers
from labs_helpers.grading.hidden.agreement import any_right
from labs_helpers.grading.hidden.values import NoValue, difference, read
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits
from labs_helpers.grading.reading.lab_imports import imports_of
from labs_helpers.grading.reading.notebook_file import read_cells
from labs_helpers.grading.reading.submission import Answer, shipped_exercises
from labs_helpers.grading.verdict import RIGHT, Verdict, verdicts
from labs_helpers.labs import Lab


class CourseAnswerFails(RuntimeError):
    """Which of the course's own answers its own check does not find right here."""


@dataclass(frozen=True)
class CourseAnswer:
    """cases: the lines of an exercise's check. values: of its hidden inputs, or None. other: those of another seed.
    source: the answer's text."""

    cases: tuple[str, ...]
    values: Any
    source: str
    other: Any = None

    def why_other(self, found: Verdict) -> str:
        """How an answer's values differ from these, without a word of the inputs; '' where they do not."""
        if self.values is None:
            return ""
        if found.raised:
            return "raises an error"  # its name could be chosen to tell the inputs
        try:
            return difference(read(_first(found)), read(self.values))
        except NoValue as error:
            return f"gives {error}"

    def partly_right(self, found: Verdict) -> bool:
        """Whether anything that an answer gives is as here, and not by chance."""
        if self.values is None:
            return True
        try:
            given = read(_first(found))
        except NoValue:
            return False
        return isinstance(given, list) and any_right(given, read(self.values), read(self.other or []))


def _first(found: Verdict) -> Any:
    return found.values[0] if found.values else None


def course_answers(
    lab: Lab, seed: int, limits: Limits = LIMITS, judge: Callable[..., list[Verdict]] = verdicts
) -> dict[str, CourseAnswer]:
    """Exercise → its CourseAnswer. A transfer exercise has none where the course's tests are not installed.

    Raises CourseAnswerFails.
    """
    sources = own_answers(lab)
    answers = [Answer(one, sources[one.id]) for one in shipped_exercises(lab) if one.id in sources]
    found = {}
    told = judge(answers, imports_of(read_cells(lab.path)), limits, seeds=(seed, seed + 1))
    for answer, one in zip(answers, told, strict=True):
        exercise = answer.shipped.id
        if one.status != RIGHT or one.raised:
            what = one.message or f"for hidden inputs it raises {one.raised}"
            raise CourseAnswerFails(f"the course's own answer to {exercise} is found {one.status} here: {what}")
        values, other = one.values or (None, None)
        found[exercise] = CourseAnswer(one.lines, values, sources[exercise], other)
    return found
