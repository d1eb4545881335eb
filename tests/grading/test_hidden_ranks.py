"""Test hidden inputs of labs 05 to 09: right answers written differently agree with the reference, and planted bugs
do not, unless only their communication is wrong."""

import importlib
import json
import sys

import mpi4py
import pytest

from labs_helpers.grading.hidden import generator, run_of
from labs_helpers.grading.hidden.answer_values import MOST
from labs_helpers.grading.hidden.values import difference, read, written
from labs_helpers.labs import LABS, ROOT
from labs_helpers.launch.process import run
from tests.planted import planted

mpi4py.rc(initialize=False, finalize=False)  # an answer imports mpi4py.MPI into this process: that starts no MPI here

# How many bugs the labs' tests plant, and at how many of them the values are wrong; the others send or load too much,
# work at the wrong time, or are right for all that the exercise promises about its input.
PLANTED = {"05": (115, 89), "06": (178, 175), "07": (331, 316), "08": (231, 203), "09": (267, 243), "10": (114, 108)}


def planted_bugs(number):
    """The class that tests a lab's checks."""
    lab = next(lab for lab in LABS if lab.number == number)
    tests = importlib.import_module(f"{lab.package.replace('labs_helpers', 'tests')}.test_planted_bugs")
    return lab, getattr(tests, f"TestLab{number}")


def texts(exercise, function, seed):
    return [written(value) for value in run_of(exercise)(function, generator(seed, exercise))]


def agrees(exercise, function, expected):
    """Whether a function gives what the reference gives, by seed."""
    try:
        return not any(difference(read(texts(exercise, function, seed)), right) for seed, right in expected.items())
    except Exception:
        return False


def references(lab, known, seeds=(7, 8)):
    """(exercise's number, name, reference, what it gives by seed)."""
    for exercise in lab.exercises():
        name = exercise.trial.__name__
        expected = {seed: read(texts(exercise.id, known.REFERENCES[name], seed)) for seed in seeds}
        yield exercise.id, name, known.REFERENCES[name], expected


@pytest.mark.parametrize("number", ["06", "07", "08", "09", "10"])
def test_a_right_answer_written_differently_agrees_and_a_bug_does_not(number, tmp_path):
    lab, known = planted_bugs(number)
    for exercise, name, reference, expected in references(lab, known, (7,)):
        changes = next(changes for one, changes in known.DIFFERENT if one == name)
        assert agrees(exercise, planted(reference, tmp_path, *changes), expected), exercise
        bugs = [changes for one, _, changes, _ in known.BUGS if one == name][:5]
        assert not all(agrees(exercise, planted(reference, tmp_path, *changes), expected) for changes in bugs), exercise
        assert len(json.dumps(texts(exercise, reference, 9))) < MOST / 2, exercise


def test_what_is_sent_counts_beside_a_check_too(tmp_path):
    lab, known = planted_bugs("09")
    reference = known.REFERENCES["clip_shards"]
    gathered = "every = squares.new_empty(dist.get_world_size(group))\n    " \
        "dist.all_gather_into_tensor(every, squares[None], group=group)\n    squares = every.sum()"  # fmt: skip
    expected = {7: read(texts("09/8", reference, 7))}
    change = ("dist.all_reduce(squares, group=group)", gathered)
    assert not agrees("09/8", planted(reference, tmp_path, change), expected)


def test_right_values_that_cost_more_are_not_right_beside_a_check():
    reference = planted_bugs("06")[1].REFERENCES["ring_reduce_scatter"]

    def naive(comm, data, op):
        whole, other = data.copy(), data.copy()
        for turn in range(1, comm.size):
            comm.Sendrecv(whole, (comm.rank + turn) % comm.size, recvbuf=other, source=(comm.rank - turn) % comm.size)
            op(data, other, out=data)

    found, right = (read(texts("06/3", one, 7)) for one in (naive, reference))
    assert difference(found, right) and not difference(found[1::2], right[1::2])  # what the ranks are left with


@pytest.mark.soak
def test_no_module_of_hidden_inputs_needs_exercises_or_checks():
    program = """
import importlib, sys
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[-1] in ("exercises", "checks") and name.startswith("labs_helpers."):
            raise ImportError(name)
sys.meta_path.insert(0, Nowhere())
from labs_helpers.labs import LABS
from labs_helpers.measure.machine import prepare_triton
prepare_triton()
for number in sys.argv[1:]:
    importlib.import_module(next(lab.package for lab in LABS if lab.number == number) + ".hidden")
print("imported")
"""
    assert run([sys.executable, "-c", program, *PLANTED], timeout=100, cwd=ROOT).strip() == "imported"


@pytest.mark.soak
@pytest.mark.parametrize("number", PLANTED)
def test_all_right_answers_agree_and_most_bugs_do_not(number, tmp_path):
    lab, known = planted_bugs(number)
    bugs = seen = 0
    for exercise, name, reference, expected in references(lab, known):
        for one, changes in known.DIFFERENT:
            if one == name:
                assert agrees(exercise, planted(reference, tmp_path, *changes), expected), (exercise, changes)
        for one, _, changes, _ in known.BUGS:
            if one == name:
                bugs += 1
                seen += not agrees(exercise, planted(reference, tmp_path, *changes), expected)
    least = PLANTED[number][1]
    assert seen >= least, f"{seen} of {bugs} planted bugs give other values, not {least} as before"
