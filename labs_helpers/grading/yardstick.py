"""What a lab's own answers give in a jail on this machine: the cases of each check, and the values of hidden inputs.

They are graded first, so that where a check does not work nobody gets a zero for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from labs_helpers.course.stub import cell_of
from labs_helpers.grading.hidden.values import NoValue, difference, read
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits
from labs_helpers.grading.reading.lab_imports import imports_of
from labs_helpers.grading.reading.notebook_file import read_cells
from labs_helpers.grading.reading.submission import Answer, shipped_exercises
from labs_helpers.grading.verdict import RIGHT, Verdict, verdicts
from labs_helpers.labs import Lab


class NoYardstick(RuntimeError):
    """Which of the course's own answers its own check does not find right here."""


@dataclass(frozen=True)
class Yardstick:
    """cases: the lines of an exercise's check. values: what its hidden inputs give, or None. source: its answer."""

    cases: tuple[str, ...]
    values: Any
    source: str

    def why_other(self, found: Verdict) -> str:
        """How an answer's values differ from these, without a word of the inputs; '' where they do not."""
        if self.values is None:
            return ""
        if found.values is None:
            return f"raises {found.raised}" if found.raised else "gives no values"
        try:
            return difference(read(found.values), read(self.values))
        except NoValue as error:
            return f"gives {error}"


def yardsticks(
    lab: Lab, seed: int, limits: Limits = LIMITS, judge: Callable[..., list[Verdict]] = verdicts
) -> dict[str, Yardstick]:
    """Of each exercise, by its id. A transfer exercise has none where the course's tests are not installed.

    Raises NoYardstick.
    """
    sources = own_answers(lab)
    answers = [Answer(one, sources[one.id]) for one in shipped_exercises(lab) if one.id in sources]
    found = judge(answers, imports_of(read_cells(lab.path)), limits, seed=seed)
    said = dict(zip((answer.shipped.id for answer in answers), found, strict=True))
    for exercise, one in said.items():
        if one.status != RIGHT or one.raised:
            what = one.message or f"for hidden inputs it raises {one.raised}"
            raise NoYardstick(f"the course's own answer to {exercise} is found {one.status} here: {what}")
    return {exercise: Yardstick(one.lines, one.values, sources[exercise]) for exercise, one in said.items()}


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
