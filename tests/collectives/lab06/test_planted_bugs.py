"""Each check of lab 06 names the mistakes that people make, and accepts right answers written differently."""

from __future__ import annotations

from copy import deepcopy

import mpi4py
import numpy as np
import pytest

from labs_helpers.collectives.lab06 import checks as check
from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks.on_ranks import called, left, on_ranks
from labs_helpers.course.verdict import Wrong, on_real_ranks, practice_ranks
from labs_helpers.practice import practice
from tests.collectives.lab06 import bugs_1_to_5, bugs_6_to_8
from tests.collectives.lab06.exercises.ex8_recursive_halving import recursive_halving
from tests.collectives.lab06.right_answers import DIFFERENT
from tests.planted import PlantedBugs, planted, rejects

mpi4py.rc(initialize=False, finalize=False)  # an answer imports mpi4py.MPI into this process: that starts no MPI here


def on_practice_instead(function, ranks, *args, timeout):
    return practice(lambda comm: function(comm, *deepcopy(args)), ranks).results


class TestLab06(PlantedBugs):
    check = check
    REFERENCES = {
        "ring_shift": exercises.ring_shift,
        "naive_allreduce": exercises.naive_allreduce,
        "ring_reduce_scatter": exercises.ring_reduce_scatter,
        "ring_allreduce": exercises.ring_allreduce,
        "pairwise_alltoall": exercises.pairwise_alltoall,
        "fit_cost": exercises.fit_cost,
        "shared_memory_allreduce": exercises.shared_memory_allreduce,
        "recursive_halving": recursive_halving,
    }
    BUGS = bugs_1_to_5.BUGS + bugs_6_to_8.BUGS
    DIFFERENT = DIFFERENT

    @pytest.fixture(autouse=True)
    def few_processes(self, request, monkeypatch):
        """Real ranks for the references and where memory is shared; elsewhere practice ranks in their place."""
        if "reference" not in request.node.name and "shared_memory" not in request.node.name:
            monkeypatch.setattr("labs_helpers.launch.mpirun.run_on_ranks", on_practice_instead)


def test_a_deadlock_is_told_within_a_second_on_practice_ranks(tmp_path, monkeypatch):
    monkeypatch.setattr(practice_ranks, "LIMIT_S", 1)  # past it the message is another
    stuck = planted(exercises.ring_shift, tmp_path, ("elif comm.rank % 2 == 0:", "elif comm.rank >= 0:"))
    rejects(check.ring_shift, stuck, "a deadlock: rank 0 waits to send to 1, which waits to send to 0")


def test_a_loop_that_never_ends_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(practice_ranks, "LIMIT_S", 0.2)
    endless = planted(
        exercises.ring_shift,
        tmp_path,
        ("    if comm.size == 1:", "    while comm.size > 1:\n        pass\n    if comm.size == 1:"),
    )
    rejects(check.ring_shift, endless, "a loop that never ends")


def test_a_deadlock_of_real_ranks_names_ranks_function_and_line(tmp_path):
    """Sends of 4,096 bytes wait for their receiver; those of the practice ranks were let off here."""
    stuck = planted(exercises.ring_shift, tmp_path, ("elif comm.rank % 2 == 0:", "elif comm.rank >= 0:"))
    blocks = [(np.zeros(512), np.zeros(512)) for _ in range(2)]
    with pytest.raises(Wrong, match="did not end within 6 s(.|\n)*ranks 0, 1: in ring_shift, line(.|\n)*comm.Send"):
        on_real_ranks("2 real ranks", stuck, left, blocks, timeout=6)


def test_an_error_of_a_real_rank_is_told(tmp_path):
    wrong = planted(exercises.ring_shift, tmp_path, ("recv[:] = send", "recv[:] = nothing"))
    with pytest.raises(Wrong, match="NameError: name 'nothing' is not defined"):
        on_real_ranks("1 real rank", wrong, left, [(np.zeros(1), np.zeros(1))])


def test_what_cannot_be_sent_to_other_processes_is_told_by_its_name(tmp_path):
    wrong = planted(
        exercises.ring_shift,
        tmp_path,
        ("def ring_shift", "import threading\n\nSEEN, KEPT = threading.Lock(), []\n\n\ndef ring_shift"),
        ("    if comm.size", "    KEPT.append(SEEN.locked())\n    if comm.size"),
    )
    blocks = [(np.zeros(1), np.zeros(1))]
    on_ranks("1 rank", wrong, called, blocks)
    with pytest.raises(Wrong, match="cannot pickle(.|\n)*with all that it refers to, and `SEEN` cannot be sent"):
        on_real_ranks("1 real rank", wrong, left, blocks)
