"""Test how lab 07's checks run answers: copies, COMM_WORLD on practice ranks, and explained errors."""

import mpi4py
import numpy as np
import pytest
import torch

from labs_helpers.course.verdict import Wrong, on_real_ranks, practice_ranks
from labs_helpers.course.verdict.copies import copied, what_changed
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import on_ranks

mpi4py.rc(initialize=False, finalize=False)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24.0).reshape(2, 3, 4)[:, :, 1:3],
        np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(12.0)[::-2],
        np.asfortranarray(np.ones((3, 4), np.float16)),
        np.array(3.0),
        np.zeros((0, 4)),
    ],
    ids=lambda array: str(array.strides),
)
def test_a_copy_has_the_strides_and_none_of_the_memory(array):
    made = copied(array)
    assert np.array_equal(made, array) and made.dtype == array.dtype
    assert made.strides == array.strides and not np.shares_memory(made, array)


def test_what_has_changed_is_named():
    before = np.array([[1.0, np.nan]])
    assert what_changed("x", before, before.copy()) == ""
    assert what_changed("x", before, np.array([[2.0, np.nan]])) == "x must stay unchanged: x[0, 0] was 1 and is 2 now"
    assert "is (2, 1) now" in what_changed("x", before, before.reshape(2, 1))
    tensors = [torch.tensor(1.0), torch.zeros(2)]
    assert "g[0] was 1 and is 5 now" in what_changed("g", tensors, [torch.tensor(5.0), tensors[1]])
    assert "had 2 entries and has 1 now" in what_changed("g", tensors, tensors[:1])
    other = [tensors[0], torch.zeros(2)]
    assert what_changed("g", tensors, other) == ""
    assert "has a different object at index 1 now" in what_changed("g", tensors, other, tensors)


def test_comm_world_is_the_practice_ranks_while_they_run():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    run = on_ranks("", None, lambda _, comm: (MPI.COMM_WORLD.rank, MPI.COMM_WORLD.Get_size()), [()] * 3)
    assert run.results == [(0, 3), (1, 3), (2, 3)] and MPI.COMM_WORLD is world


def test_arguments_are_copies_and_those_to_keep_are_compared():
    def write(student, comm, x, y):
        y[0] = x[0]

    own = [(np.ones(2), np.zeros(2))] * 2
    on_ranks("", None, write, own, kept=("x",))
    assert own[0][1].tolist() == [0, 0]
    with pytest.raises(Wrong, match=r"rank 0: y must stay unchanged: y\[0\] was 0 and is 1 now"):
        on_ranks("", None, write, own, kept=("x", "y"))


def endless(comm):
    while comm:
        pass


def raises(comm):
    raise ValueError("shapes (2,) and (3,)")


def test_an_error_has_its_own_cause_before_the_common_ones_and_a_loop_ends(monkeypatch):
    def call(student, comm):
        return student(comm)

    with pytest.raises(Wrong, match="rank 0 raised ValueError(.|\n)*One thing to try: print the shapes"):
        on_ranks("", raises, call, [()] * 2)
    with pytest.raises(Wrong, match="Likely cause: two lengths"):
        on_ranks("", raises, call, [()] * 2, errors=[("shapes", "two lengths")])
    monkeypatch.setattr(practice_ranks, "LIMIT_S", 0.1)
    with pytest.raises(Wrong, match="a loop that never ends"):
        on_ranks("", endless, call, [()] * 2)


def test_real_ranks_return_what_the_call_does_and_their_errors_speak_of_the_function():
    assert on_real_ranks("", raises, lambda _, comm, x: (comm.rank, x), [("a",), ("b",)]) == [(0, "a"), (1, "b")]
    with pytest.raises(Wrong, match="raises failed on 2 ranks(.|\n)*ValueError: shapes"):
        on_real_ranks("", raises, lambda student, comm: student(comm), [()] * 2)
