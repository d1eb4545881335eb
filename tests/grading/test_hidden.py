"""Hidden inputs: every exercise has them, they are the same for a seed, and the reference agrees with itself."""

import importlib

import pytest

from labs_helpers.grading.hidden import generator, run_of
from labs_helpers.grading.values import difference, read, written
from labs_helpers.labs import LABS

LAB_NUMBERS = {"00", "05", "06", "07", "08", "09"}


def results(exercise, function, seed=7):
    return [read(written(value)) for value in run_of(exercise)(function, generator(seed, exercise))]


def answer(lab, exercise):
    return exercise.reference or getattr(importlib.import_module(lab.transfer), exercise.trial.__name__)


@pytest.mark.parametrize("lab", [lab for lab in LABS if lab.number in LAB_NUMBERS], ids=lambda lab: lab.number)
def test_a_reference_agrees_with_itself_and_depends_on_the_seed(lab):
    for exercise in lab.exercises():
        once, again, other = (results(exercise.id, answer(lab, exercise), seed) for seed in (7, 7, 8))
        assert once and not difference(once, again), exercise.id
        assert difference(once, other), f"{exercise.id}: another seed gives the same"
