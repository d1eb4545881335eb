"""A class's submissions of lab 02, drawn from a seed, with the points that each should get.

The points follow from how a submission was made: full points for a right answer, none if nothing was written, and for a
planted bug the points of the cases that it passes in this process.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labs_helpers.authoring.references import reference
from labs_helpers.labs import lab
from tests.gemm.lab02.test_planted_bugs import TestLab02
from tests.grading import written
from tests.grading.written import Changes, mark_of, planted_cell, with_answers

LAB = lab("02")
SEED = 11  # of the hidden inputs
EXERCISES = {one.id: one for one in LAB.exercises()}
STUBS = {mark_of(cell): "".join(cell["source"]) for cell in json.loads(LAB.path.read_text())["cells"] if mark_of(cell)}
SOLVED = written.solved(LAB)
NAMES = {one.trial.__name__: one.id for one in EXERCISES.values()}


def of_exercise(exercise: str, table: list[Any], changes: int) -> list[Changes]:
    return [row[changes] for row in table if NAMES[row[0]] == exercise]


BUGS = {id: of_exercise(id, TestLab02.BUGS, 2) for id in EXERCISES}
DIFFERENT = {id: of_exercise(id, TestLab02.DIFFERENT, 1) for id in EXERCISES}


@dataclass
class Submission:
    """points: by exercise, None where somebody has to look first. status: in the table of grades."""

    student: str
    kind: str
    points: dict[str, float | None]
    notebook: dict[str, Any] = field(default_factory=dict)
    status: str = "graded"


class Author:
    """Draws answers. folder: for planted bugs."""

    def __init__(self, seed: int, folder: Path):
        self.draw, self.folder = random.Random(seed), folder
        self.shares: dict[tuple[str, str], float] = {}

    def solved(self) -> tuple[dict[str, str], dict[str, float]]:
        return dict(SOLVED), {id: float(one.points) for id, one in EXERCISES.items()}

    def half(self) -> tuple[dict[str, str], dict[str, float]]:
        cells, points = self.solved()
        for id in self.draw.sample(list(EXERCISES), self.draw.randint(2, 5)):
            cells[id], points[id] = STUBS[id], 0.0
        return cells, points

    def different(self) -> tuple[dict[str, str], dict[str, float]]:
        cells, points = self.solved()
        for id, one in EXERCISES.items():
            cells[id] = planted_cell(reference(LAB, one), self.draw.choice(DIFFERENT[id]))
        return cells, points

    def bugs(self, most: int = 1) -> tuple[dict[str, str], dict[str, float]]:
        cells, points = self.solved()
        for id in self.draw.sample(list(EXERCISES), 1 if most == 1 else self.draw.randint(2, most)):
            changes = self.draw.choice(BUGS[id])
            cells[id] = planted_cell(reference(LAB, EXERCISES[id]), changes)
            points[id] = round(EXERCISES[id].points * self.share(id, changes), 1)
        return cells, points

    def mixed(self) -> tuple[dict[str, str], dict[str, float]]:
        return self.draw.choice([self.solved, self.half, self.different, self.bugs])()

    def share(self, id: str, changes: Changes) -> float:
        key = id, repr(changes)
        if key not in self.shares:
            right, cases = written.share_passed(LAB, EXERCISES[id], changes, self.folder)
            assert right < cases, f"{id}: a bug that its check does not see: {changes}"
            counts = right and written.right_beside_its_check(LAB, EXERCISES[id], changes, self.folder, SEED)
            self.shares[key] = right / cases if counts else 0.0
        return self.shares[key]


def the_class(kinds: Sequence[str], seed: int, folder: Path) -> list[Submission]:
    """An honest submission of each of these kinds. folder: for files that are made on the way."""
    author = Author(seed, folder)
    return [_MAKE[kind](f"s{number:03d}", author) for number, kind in enumerate(kinds)]


def _several(student: str, author: Author) -> Submission:
    cells, points = author.bugs(most=4)
    return Submission(student, "several bugs", points, with_answers(LAB, cells))


def _changed(kind: str) -> Callable[[str, Author], Submission]:
    """Answers of all kinds, in a notebook to which something was done."""

    def make(student: str, author: Author) -> Submission:
        from tests.grading import notebook_changes

        cells, points = author.mixed()
        one = Submission(student, kind, points, copy.deepcopy(with_answers(LAB, cells)))
        getattr(notebook_changes, kind)(one, author.draw)
        return one

    return make


CHANGED = ("own_helpers", "syntax_error", "renamed", "deleted", "doubled", "reordered", "edited_metadata",
           "older_version", "magics")  # fmt: skip
_MAKE = {kind: _changed(kind) for kind in CHANGED} | {"several": _several}
