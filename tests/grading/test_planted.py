"""Test that each planted bug loses exactly the points of the cases that it fails, in the jail.

Some are drawn from each exercise; PLANTED=all runs all two thousand, in more than an hour on two cores.
"""

from __future__ import annotations

import importlib
import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from labs_helpers.authoring.references import reference
from labs_helpers.grading.course_answers import course_answers
from labs_helpers.grading.jails.bubblewrap import why_not
from labs_helpers.grading.marks import HIDDEN, Mark, marks
from labs_helpers.labs import LABS, Lab
from tests.grading.written import (
    Changes,
    planted_cell,
    right_beside_its_check,
    share_passed,
    solved,
    with_answers,
)
from tests.notebooks.complete import module_of_bugs, planted_in

SEED, DRAWN = 5, None if os.environ.get("PLANTED") == "all" else 2  # of each exercise

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


def bugs_of(lab: Lab) -> dict[str, list[tuple[str, Changes]]]:
    """Exercise → (name of a bug, its changes), those that are tried."""
    found: dict[str, list[tuple[str, Changes]]] = {}
    rows = [row for one in planted_in(lab) for row in one.BUGS]
    for exercise in lab.exercises():
        own = [(bug, changes) for name, bug, changes, *_ in rows if name == exercise.trial.__name__]
        found[exercise.id] = random.Random(f"{SEED} {exercise.id}").sample(own, min(DRAWN or len(own), len(own)))
    return found


def rounds(lab: Lab) -> Iterator[tuple[str, dict[str, tuple[str, Changes]]]]:
    """(the exercise that is solved, a bug for each of the others that has one left), until no bug is left."""
    left, ids, number = bugs_of(lab), [one.id for one in lab.exercises()], 0
    while any(left.values()):
        right = ids[number % len(ids)]
        yield right, {id: left[id].pop() for id in ids if id != right and left[id]}
        number += 1


@contextmanager
def quick(lab: Lab, name: str) -> Iterator[None]:
    """For a check in this process: no solver, which finds causes, and ranks in this process where they will do."""
    with pytest.MonkeyPatch.context() as own:
        own.setattr("labs_helpers.course.verdict.sanitizer.sanitize", lambda *_, **__: "")
        practice = getattr(importlib.import_module(module_of_bugs(lab)), "on_practice_instead", None)
        if practice and "shared_memory" not in name:
            own.setattr("labs_helpers.launch.mpirun.run_on_ranks", practice)
        yield


def fault(lab: Lab, exercise: Any, changes: Changes, mark: Mark, folder: Path) -> str:
    """What is not right about the mark of a planted bug, or ''."""
    right, cases = share_passed(lab, exercise, changes, folder)
    counts = not right or right_beside_its_check(lab, exercise, changes, folder, SEED)
    points = round(exercise.points * right / cases, 1) if counts else 0
    if right < cases and mark.points == points and (counts or HIDDEN in mark.flags):
        return ""
    return f"{mark.points} points, {mark.status}, where {right} of {cases} cases are right: {mark.reason[:200]}"


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_a_planted_bug_loses_its_points_and_no_others(lab, tmp_path):
    measured, found = course_answers(lab, SEED), []
    exercises = {one.id: one for one in lab.exercises()}
    answers = solved(lab)
    for right, bugs in rounds(lab):
        cells = {id: planted_cell(reference(lab, exercises[id]), changes) for id, (_, changes) in bugs.items()}
        path = tmp_path / "ada.ipynb"
        path.write_text(json.dumps(with_answers(lab, cells | {right: answers[right]})))
        given = {mark.exercise: mark for mark in marks(path, lab, measured, SEED)}
        if given[right].points != exercises[right].points:
            found.append(f"{right}, which is solved: {given[right].points} points, {given[right].reason[:200]}")
        for id, (bug, changes) in bugs.items():
            with quick(lab, exercises[id].trial.__name__):
                said = fault(lab, exercises[id], changes, given[id], tmp_path)
            found += [f"{id} {bug}: {said}"] if said else []
    assert found == []
