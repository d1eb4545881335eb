"""Replacements for a retired exercise: older copies of a notebook still call its check and reveal its reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labs_helpers.course.scoreboard import RETIRED
from labs_helpers.course.skipping import skip_cells
from labs_helpers.course.stub import attempted
from labs_helpers.course.withheld import Withheld
from labs_helpers.course.wrap import wrap
from labs_helpers.labs import Retired, retired


@dataclass(frozen=True)
class RetiredExercise:
    """The check of a retired exercise: it prints that and returns the student's function. If the function was never
    written, cells that need it are skipped."""

    exercise: Retired

    def __call__(self, student: Any) -> Any:
        print(wrap(f"{RETIRED} {self.exercise}"))
        if not isinstance(student, Withheld) and attempted(student):
            return student
        skip_cells()
        return Withheld(self.exercise.id, self.exercise.name)


def retired_in(number: str) -> Callable[[str], RetiredExercise]:
    """Return the `__getattr__` of the modules `checks` and `exercises` of lab `number`."""

    def find(name: str) -> RetiredExercise:
        for one in retired(number):
            if one.name == name:
                return RetiredExercise(one)
        raise AttributeError(f"lab {number} has no exercise `{name}`")

    return find
