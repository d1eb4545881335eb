"""Run a lab's own answers in a jail on this machine: the cases of each check, and the values for hidden inputs.

They are graded first, so that a check that does not work here gives nobody a zero.
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
    """One of the course's own answers fails its check here."""


@dataclass(frozen=True)
class CourseAnswer:
    """The course's answer. cases: its check's lines. values: for its hidden inputs, or None. other: the values for
    another seed. source: its text."""

    cases: tuple[str, ...]
    values: Any
    source: str
    other: Any = None

    def why_other(self, found: Verdict) -> str:
        """Say how an answer's values differ from these without revealing the inputs; '' if they agree."""
        if self.values is None:
            return ""
        if found.raised:
            return "raises an error"  # its name could be chosen to tell the inputs
        try:
            return difference(read(_first(found)), read(self.values))
        except NoValue as error:
            return f"gives {error}"

    def partly_right(self, found: Verdict) -> bool:
        """Return True if some of an answer's values agree with these, and not by chance."""
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
    """Return exercise → its CourseAnswer. A transfer exercise has none if the course's tests are not installed.

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
