"""Each check of lab 07 names the mistakes that people make, and accepts right answers written differently."""

from __future__ import annotations

from copy import deepcopy

import mpi4py
import pytest

from labs_helpers.practice.groups import practice_groups
from labs_helpers.tensor_parallel.lab07 import checks as check
from labs_helpers.tensor_parallel.lab07 import exercises
from tests.planted import PlantedBugs
from tests.tensor_parallel.lab07.bugs import (
    ex1_trace_shapes,
    ex2_get_info,
    ex3_split_data,
    ex4_naive_collect_forward_input,
    ex6_naive_collect_backward_x,
    ex7_column_parallel_linear,
    ex8_row_parallel_linear,
    ex9_average_gradients,
    ex10_parallel_cross_entropy,
    ex11_conjugate_operators,
    ex12_communication_share,
    kept,
)
from tests.tensor_parallel.lab07.exercises.ex10_parallel_cross_entropy import (
    parallel_cross_entropy,
)

FILES = (
    ex1_trace_shapes,
    ex2_get_info,
    ex3_split_data,
    ex4_naive_collect_forward_input,
    ex6_naive_collect_backward_x,
    ex7_column_parallel_linear,
    ex8_row_parallel_linear,
    ex9_average_gradients,
    ex10_parallel_cross_entropy,
    ex11_conjugate_operators,
    ex12_communication_share,
    kept,
)

mpi4py.rc(initialize=False, finalize=False)  # an answer imports mpi4py.MPI into this process: that starts no MPI here


def on_practice_instead(function, ranks, *args, timeout):
    return practice_groups(lambda comm: function(comm, *deepcopy(args)), ranks).results


class TestLab07(PlantedBugs):
    check = check
    BUGS = [bug for file in FILES for bug in file.BUGS]
    DIFFERENT = [answer for file in FILES for answer in file.DIFFERENT]
    REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {
        "parallel_cross_entropy": parallel_cross_entropy
    }

    @pytest.fixture(autouse=True)
    def few_processes(self, request, monkeypatch):
        """Real ranks for the references; elsewhere practice ranks in their place."""
        if "reference" not in request.node.name:
            monkeypatch.setattr("labs_helpers.launch.mpirun.run_on_ranks", on_practice_instead)
