"""Test that every candidate cause of every case can be computed; otherwise a bug in one would show only for its
mistake."""

import pytest

from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.tensor_parallel.lab07 import checks as check
from tests.tensor_parallel.lab07 import test_planted_bugs

NAMES = (
    "naive_collect_forward_input",
    "naive_collect_backward_x",
    "column_parallel_linear",
    "row_parallel_linear",
    "average_gradients",
    "parallel_cross_entropy",
)


@pytest.mark.parametrize("name", NAMES)
def test_candidates_have_an_answer_for_each_rank(name, monkeypatch):
    cases = []

    def expect(self, case, found, right, causes, told=None):
        cases.append(case)
        for sentence, answer in causes():
            assert sentence and len(answer() if callable(answer) else answer) == len(found)

    monkeypatch.setattr(Comparison, "expect", expect)
    monkeypatch.setattr("labs_helpers.launch.mpirun.run_on_ranks", test_planted_bugs.on_practice_instead)
    lines = getattr(check, name).verify(test_planted_bugs.TestLab07.REFERENCES[name])
    assert len(set(cases)) >= len(lines) - 1  # one line is of two calls, and has no candidates
