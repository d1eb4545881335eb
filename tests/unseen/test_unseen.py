"""Test answers that were written without knowledge of the checks: wrong ones are caught, and their cause is named."""

import importlib
from copy import deepcopy
from pathlib import Path

import mpi4py
import pytest

from labs_helpers.course.verdict import Wrong
from labs_helpers.labs import lab
from labs_helpers.practice import practice
from labs_helpers.practice.groups import practice_groups
from tests.planted import planted

mpi4py.rc(initialize=False, finalize=False)  # an answer imports mpi4py.MPI into this process: that starts no MPI here

NUMBERS = sorted(path.stem[3:] for path in Path(__file__).parent.glob("lab*.py"))
CASES = [
    pytest.param(number, answer, id=f"{number} {answer.exercise}: {answer.what}")
    for number in NUMBERS
    for answer in importlib.import_module(f"tests.unseen.lab{number}").ANSWERS
]


def made(number, answer, folder):
    """Return (the check, the answer as a function)."""
    one = lab(number)
    exercises = importlib.import_module(f"{one.package}.exercises")
    reference = getattr(exercises, answer.exercise, None)
    if reference is None:
        reference = getattr(importlib.import_module(one.transfer), answer.exercise)
    check = getattr(importlib.import_module(f"{one.package}.checks"), answer.exercise)
    return check, planted(reference, folder, *answer.changes, source=answer.source)


PRACTICE = {"06": practice, "07": practice_groups}  # in place of real ranks, but where memory is shared


def on_practice_instead(number):
    def run(function, ranks, *args, timeout):
        return PRACTICE[number](lambda comm: function(comm, *deepcopy(args)), ranks).results

    return run


@pytest.mark.soak
@pytest.mark.parametrize(("number", "answer"), CASES)
def test_an_answer_is_judged_by_its_cause(number, answer, tmp_path, monkeypatch):
    if number in PRACTICE and "shared_memory" not in answer.exercise:
        monkeypatch.setattr("labs_helpers.launch.mpirun.run_on_ranks", on_practice_instead(number))
    check, function = made(number, answer, tmp_path)
    if answer.says is None:
        assert check.verify(function)
    else:
        with pytest.raises(Wrong, match=answer.says or None):
            check.verify(function)
