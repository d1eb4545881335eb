"""Test that every registered exercise has its cells, hints, planted bugs and other right answers."""

import pytest

from labs_helpers.course.exercise import Exercise
from labs_helpers.labs import LABS
from tests.notebooks.complete import lacking, module_of_bugs, planted_in
from tests.notebooks.labs import shipped


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.path.stem)
def test_no_exercise_lacks_anything(lab):
    notebook, planted = shipped(lab), planted_in(lab)
    assert planted, f"{module_of_bugs(lab)} has no subclass of PlantedBugs"
    assert [line for exercise in lab.exercises() for line in lacking(exercise, notebook, planted)] == []


def test_what_a_new_exercise_lacks_is_said():
    def halve(student):
        yield "right"

    lab = LABS[0]
    new = Exercise("00/9", "halve", points=5, minutes=5, reference=None, trial=halve)
    assert lacking(new, shipped(lab), planted_in(lab)) == [
        "00/9 halve: no cell 00-9: make sync",
        "00/9 halve: no cell 00-9-check: make sync",
        "00/9 halve: 0 hints in the cell behind its check; 3 are needed, in <details>",
        "00/9 halve: `halve` is not in the REFERENCES of its lab's planted bugs",
        "00/9 halve: 0 planted bugs; 5 are needed",
        "00/9 halve: 0 right answers that are written differently; 2 are needed",
    ]
