"""Test hidden inputs: every exercise has them, the same for a seed; right answers agree with the reference, however
they are written, and a table of a check's cases does not."""

import importlib
import json
import sys
from itertools import islice

import pytest

from labs_helpers.grading.hidden import generator, run_of
from labs_helpers.grading.hidden.agreement import any_right
from labs_helpers.grading.hidden.answer_values import values
from labs_helpers.grading.hidden.values import difference, read, written
from labs_helpers.labs import LABS, ROOT
from labs_helpers.launch.process import run
from tests.planted import planted

KERNELS = ("02", "04")  # whose interpreter takes its time
# Where the right answers stand that are written differently.
DIFFERENT = {
    "00": "tests.first_kernels.lab00.test_planted_bugs.TestLab00",
    "01": "tests.transformer.lab01.test_planted_bugs.TestLab01",
    "02": "tests.gemm.lab02.test_planted_bugs.TestLab02",
    "03": "tests.gemm.lab03.test_planted_bugs.TestLab03",
    "04": "tests.attention.lab04.test_planted_bugs.TestLab04",
}
IMPORTS = """
import importlib, sys
from labs_helpers.labs import LABS
for lab in LABS:
    importlib.import_module(f"{lab.package}.hidden")
print([name for name in sys.modules if ".exercises" in name or ".checks" in name])
"""


def results(exercise, function, seed=7, most=None):
    return [read(written(value)) for value in islice(run_of(exercise)(function, generator(seed, exercise)), most)]


def answer(lab, exercise):
    return exercise.reference or getattr(importlib.import_module(lab.transfer), exercise.trial.__name__)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_a_reference_agrees_with_itself_and_depends_on_the_seed(lab):
    for exercise in lab.exercises():
        function = answer(lab, exercise)
        once, again = (results(exercise.id, function) for _ in range(2))
        assert once and not difference(once, again), exercise.id
        most = 2 if lab.number in KERNELS else len(once)
        other = results(exercise.id, function, seed=8, most=most)
        assert difference(once[:most], other), f"{exercise.id}: another seed gives the same"


def test_hidden_inputs_import_no_reference():
    """They run in a jail where there is none."""
    assert run([sys.executable, "-c", IMPORTS], timeout=60, cwd=ROOT).strip() == "[]"


def agrees(lab, name, function, seeds=(7,)):
    """Asserts that a function gives what the reference does."""
    exercise = next(one for one in lab.exercises() if one.trial.__name__ == name)
    for seed in seeds:
        expected = results(exercise.id, answer(lab, exercise), seed)
        assert difference(results(exercise.id, function, seed), expected) == "", (name, seed)


def written_differently(lab):
    module, _, name = DIFFERENT[lab.number].rpartition(".")
    tests = getattr(importlib.import_module(module), name)
    return tests.REFERENCES, tests.DIFFERENT


WITH_OTHERS = [pytest.param(lab, id=lab.number) for lab in LABS if lab.number in DIFFERENT]


@pytest.mark.parametrize("lab", [one for one in WITH_OTHERS if one.id not in KERNELS])
def test_right_answers_written_differently_agree(lab, tmp_path):
    """The last one of each exercise; all of them, and those of kernels, are a soak test."""
    references, different = written_differently(lab)
    for name, changes in {name: changes for name, changes in different}.items():
        agrees(lab, name, planted(references[name], tmp_path, *changes))


@pytest.mark.soak
@pytest.mark.parametrize("lab", WITH_OTHERS)
def test_all_right_answers_written_differently_agree_for_many_seeds(lab, tmp_path):
    references, different = written_differently(lab)
    for name, changes in different:
        agrees(lab, name, planted(references[name], tmp_path, *changes), range(3))


class Table:
    """What the reference gave in a check, and nothing else."""

    def __init__(self, reference):
        self.reference, self.seen = reference, {}

    def fill(self, *args, **kwargs):
        found = self.reference(*args, **kwargs)
        self.seen[self.key(args, kwargs)] = found
        return found

    def look_up(self, *args, **kwargs):
        return self.seen[self.key(args, kwargs)]

    def guess(self, *args, **kwargs):
        return self.seen.get(self.key(args, kwargs), [*self.seen.values()][-1])

    @staticmethod
    def key(args, kwargs):
        return str([json.dumps(text(part)) for part in (*args, *sorted(kwargs.items()))])


def text(value):
    try:
        return written(value)
    except ValueError:
        return repr(value)


def a_table_fails(lab, exercise):
    table = Table(answer(lab, exercise))
    for _ in exercise.trial(table.fill):
        pass
    assert table.seen, exercise.id
    expected, other = (results(exercise.id, table.reference, seed) for seed in (7, 8))
    # What it does not know it guesses: no part of that is right, which would be worth the share of its cases.
    assert not any_right(results(exercise.id, table.guess), expected, other), exercise.id
    try:
        found = results(exercise.id, table.look_up)
    except KeyError:
        return
    assert difference(found, expected), exercise.id


@pytest.mark.parametrize("id", ["00/0", "02/1", "03/2"])
def test_a_table_of_what_the_check_asks_does_not_pass(id):
    lab = next(lab for lab in LABS if lab.number == id[:2])
    a_table_fails(lab, next(one for one in lab.exercises() if one.id == id))


def test_an_interrupt_that_an_answer_lets_through_costs_the_values_behind_it(tmp_path):
    lab = next(lab for lab in LABS if lab.number == "03")
    exercise = next(one for one in lab.exercises() if one.trial.__name__ == "grid_search")
    lets_through = planted(answer(lab, exercise), tmp_path, ("except KeyboardInterrupt:", "except ZeroDivisionError:"))
    job = {"exercise": exercise.id, "key": 3}
    found, right = values(job, lets_through), values(job, answer(lab, exercise))
    assert found["raised"] == "KeyboardInterrupt" and len(right["values"]) > len(found["values"]) > 0
    assert found["values"] == right["values"][: len(found["values"])]


@pytest.mark.soak
@pytest.mark.parametrize("id", ["00/4", "01/4", "01/5", "01/7", "03/1", "04/1", "04/2"])
def test_no_table_of_what_a_check_asks_passes(id):
    test_a_table_of_what_the_check_asks_does_not_pass(id)
