"""What only a machine with a GPU does with a lab's functions, done on a CPU: another process interprets them.

As in a notebook, the functions are those of cells: they travel with all that they refer to. Labs are found by
themselves; one whose checks or stretch take this way is tried without a line here.
"""

import importlib
import inspect
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from labs_helpers.compile import interpreter_process
from labs_helpers.compile.interpreter_process import call_interpreted
from labs_helpers.compile.source import plain
from labs_helpers.course.exercise import Exercise
from labs_helpers.course.verdict.interpreted import verify_interpreted
from labs_helpers.labs import LABS
from tests.compile.cells import Cells

WITH_KERNELS = [lab for lab in LABS if any(exercise.kernel for exercise in lab.exercises())]


def test_there_are_such_labs():
    assert len(WITH_KERNELS) >= 4 and len([*stretches()]) >= 3


def in_cell(function):
    """The same function, as the notebook has it: out of a cell with the text of its file."""
    cells = Cells()
    cells.run(Path(inspect.getsourcefile(plain(function))).read_text())
    return cells[plain(function).__name__]


def answers(lab):
    """Exercise → a right answer from a cell, of those that are tried in another process first."""
    for exercise in (one for one in lab.exercises() if one.kernel):
        reference = exercise.reference  # a transfer exercise has none that students get
        yield exercise, in_cell(reference or getattr(importlib.import_module(lab.transfer), exercise.trial.__name__))


def first_cases(students, exercises):
    """In the other process: the first line of each exercise's check."""
    from labs_helpers.course.scoreboard import SCORES

    found = {}
    for (module, number), student in zip(exercises, students, strict=True):
        importlib.import_module(module)
        found[number] = next(iter(SCORES.exercises[number].trial(student)))
    return found


def test_every_reference_and_transfer_is_tried_in_another_process():
    exercises, students = zip(*(pair for lab in WITH_KERNELS for pair in answers(lab)), strict=True)
    known = [(exercise.trial.__module__, exercise.id) for exercise in exercises]
    found = call_interpreted(first_cases, list(students), known)
    assert found.keys() == {exercise.id for exercise in exercises} and all(found.values())


@pytest.mark.soak
@pytest.mark.parametrize(
    ("exercise", "student"), [pair for lab in WITH_KERNELS for pair in answers(lab)], ids=lambda x: getattr(x, "id", "")
)
def test_every_case_of_every_check_says_the_same_in_another_process(exercise, student):
    assert list(verify_interpreted(exercise, student)) == [
        f"{line}  (interpreter)" for line in exercise.verify(exercise.reference or student)
    ]


def stretches():
    """The file of each stretch that asks another process where kernels are compiled."""
    for lab in LABS:
        spec = find_spec(f"{lab.package}.stretch")
        if spec and {"interpreted", "visits", "tally"} & vars(importlib.import_module(spec.name)).keys():
            yield pytest.param(Path(spec.origin), id=lab.number)


@pytest.mark.parametrize("file", [*stretches()])
def test_every_stretch_is_drawn_where_kernels_are_compiled(file, monkeypatch):
    asked = []

    def counted(function, student, *arguments, **named):
        asked.append(plain(student).__name__)
        return call_interpreted(function, student, *arguments, **named)

    monkeypatch.setattr(interpreter_process, "this_machine", lambda: SimpleNamespace(interpreted=False))
    monkeypatch.setattr(interpreter_process, "call_interpreted", counted)
    cells = Cells()
    cells.run(file.read_text())
    draw = cells["beside_ours"] if "beside_ours" in cells else cells["draw_stretch"]
    short = {"L": 64} if "L" in inspect.signature(draw).parameters else {}
    figure = draw(lambda *_, **__: None, **short)
    assert asked and figure.axes[0].has_data()


def test_a_check_is_tried_in_both(monkeypatch):
    exercise = next(one for one in WITH_KERNELS[0].exercises() if one.kernel)
    monkeypatch.setattr("labs_helpers.measure.machine.this_machine", lambda: SimpleNamespace(interpreted=False))
    monkeypatch.setattr(Exercise, "_lines", lambda self, student: iter(["on the GPU"]))
    monkeypatch.setattr(
        "labs_helpers.course.verdict.interpreted.call_interpreted", lambda *_, **__: (["one case"], None)
    )
    assert exercise.verify(exercise.reference) == ["one case  (interpreter)", "on the GPU"]
