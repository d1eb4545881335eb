"""What a lab's own answers give in a jail on this machine: the cases of each check, and the values of hidden inputs.

They are graded first, so that where a check does not work nobody gets a zero for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from labs_helpers.course.stub import cell_of
from labs_helpers.grading.hidden.agreement import any_right
from labs_helpers.grading.hidden.values import NoValue, difference, read
from labs_helpers.grading.hidden_values import hidden_values
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
    """cases: the lines of an exercise's check. values: what its hidden inputs give, or None; other: of another seed.
    source: its answer. far: whether check and hidden inputs run with an answer in a process of its own."""

    cases: tuple[str, ...]
    values: Any
    source: str
    other: Any = None
    far: bool = False

    def why_other(self, found: Verdict) -> str:
        """How an answer's values differ from these, without a word of the inputs; '' where they do not."""
        if self.values is None:
            return ""
        if found.raised:
            return "raises an error"  # its name could be chosen to tell the inputs
        if found.values is None:
            return "gives no values"
        try:
            return difference(read(found.values), read(self.values))
        except NoValue as error:
            return f"gives {error}"

    def partly_right(self, found: Verdict) -> bool:
        """Whether anything that an answer gives is as here, and not by chance."""
        if self.values is None:
            return True
        try:
            given = read(found.values)
        except NoValue:
            return False
        return isinstance(given, list) and any_right(given, read(self.values), read(self.other or []))


def course_answers(
    lab: Lab, seed: int, limits: Limits = LIMITS, judge: Callable[..., list[Verdict]] = verdicts
) -> dict[str, CourseAnswer]:
    """Of each exercise, by its id. A transfer exercise has none where the course's tests are not installed.

    Raises CourseAnswerFails.
    """
    sources = own_answers(lab)
    answers = [Answer(one, sources[one.id]) for one in shipped_exercises(lab) if one.id in sources]
    imports = imports_of(read_cells(lab.path))
    far = {answer.shipped.id for answer in answers}
    said = _by_exercise(answers, judge(answers, imports, limits, far=far))
    given = hidden_values(answers, sources, imports, limits, seed, judge, far=far)
    near = [one for one in answers if not _is_right(said[one.shipped.id]) or not _is_right(given[one.shipped.id])]
    far -= {one.shipped.id for one in near}
    if near:  # what is given to them, or comes back, is more than data
        said |= _by_exercise(near, judge(near, imports, limits))
        given |= hidden_values(near, sources, imports, limits, seed, judge)
    other = hidden_values(answers, sources, imports, limits, seed + 1, judge, far=far)
    for exercise, one in [*said.items(), *given.items(), *other.items()]:
        if not _is_right(one):
            what = one.message or f"for hidden inputs it raises {one.raised}"
            raise CourseAnswerFails(f"the course's own answer to {exercise} is found {one.status} here: {what}")
    return {
        exercise: CourseAnswer(
            one.lines, given[exercise].values, sources[exercise], other[exercise].values, exercise in far
        )
        for exercise, one in said.items()
    }


def _is_right(found: Verdict) -> bool:
    return found.status == RIGHT and not found.raised


def _by_exercise(answers: Sequence[Answer], found: Sequence[Verdict]) -> dict[str, Verdict]:
    return dict(zip((answer.shipped.id for answer in answers), found, strict=True))


@cache
def own_answers(lab: Lab) -> dict[str, str]:
    """The course's answer to each exercise of which it is to be had, as a cell."""
    found = {}
    for one in lab.exercises():
        reference = one.reference
        if reference is None:
            try:
                reference = getattr(importlib.import_module(lab.transfer), one.trial.__name__)
            except ModuleNotFoundError:
                continue
        found[one.id] = cell_of(reference)
    return found
