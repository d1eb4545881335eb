"""Compare the four collect functions with slices of the whole array, over MPI's collectives and the course's own."""

import sys

import cloudpickle
import numpy as np
import pytest

from labs_helpers.tensor_parallel.naive import (
    naive_collect_backward_output,
    naive_collect_backward_x,
    naive_collect_forward_input,
    naive_collect_forward_output,
)
from tests import real_ranks

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # pytest is nothing that ranks need

SHAPES = [(2, 3, 12), (1, 1, 12), (5, 7, 24), (0, 3, 12)]
DTYPES = ["float64", "float32", "float16", "int64", "uint8"]


def _good(result, *inputs):
    return result.flags.c_contiguous and not any(np.shares_memory(result, x) for x in inputs)


def _compare(comm):
    """Everything that differs from the whole array's slices."""
    from labs_helpers.communication.own_collectives import OwnCollectives

    wrong = []
    rank, size = comm.rank, comm.size
    random = np.random.default_rng(0)  # the same on every rank
    for way, group in {"mpi": comm, "own": OwnCollectives(comm)}.items():
        for shape in SHAPES:
            for dtype in DTYPES:
                all_ranks = random.integers(0, 9, (size, *shape)).astype(dtype)
                whole = all_ranks[0]
                part = shape[2] // size
                mine = whole[:, :, rank * part : (rank + 1) * part]  # not contiguous
                for collect in (naive_collect_forward_input, naive_collect_forward_output):
                    found = collect(mine, group, size)
                    if not (np.array_equal(found, whole) and found.dtype == dtype and _good(found, mine)):
                        wrong.append((way, collect.__name__, shape, dtype))
                found = naive_collect_backward_output(whole, rank, size)
                if not (np.array_equal(found, mine) and found.dtype == dtype and _good(found, whole)):
                    wrong.append((way, "backward_output", shape, dtype))
                for contribution in (all_ranks[rank], np.asfortranarray(all_ranks[rank])):
                    before = contribution.copy()
                    found = naive_collect_backward_x(contribution, group, size)
                    expected = all_ranks.sum(0, dtype=dtype)[:, :, rank * part : (rank + 1) * part]
                    same = np.array_equal(found, expected) and np.array_equal(contribution, before)
                    if not (same and found.dtype == dtype and _good(found, contribution)):
                        wrong.append((way, "backward_x", shape, dtype))
    return wrong


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_collects_equal_slices_of_the_whole(by_rank, ranks):
    assert [found["slices"][ranks] for found in by_rank if ranks in found["slices"]] == [[]] * ranks


def _fc_o(comm):
    """fc_o split on its output, forward and backward: errors against the whole layer, and the bytes sent both ways."""
    from labs_helpers.communication.own_collectives import OwnCollectives

    group, rank, size = OwnCollectives(comm), comm.rank, comm.size
    random = np.random.default_rng(0)  # the same on every rank
    x, W, grad = random.normal(size=(2, 3, 8)), random.normal(size=(8, 12)), random.normal(size=(2, 3, 12))
    columns = W[:, rank * 12 // size : (rank + 1) * 12 // size]
    mine = x[:, :, rank * 8 // size : (rank + 1) * 8 // size]
    out = naive_collect_forward_output(naive_collect_forward_input(mine, group, size) @ columns, group, size)
    forward = group.bytes_sent
    grad_x = naive_collect_backward_x(naive_collect_backward_output(grad, rank, size) @ columns.T, group, size)
    errors = np.abs(out - x @ W).max(), np.abs(grad_x - (grad @ W.T)[:, :, rank * 8 // size :][:, :, : 8 // size]).max()
    return max(errors), forward, group.bytes_sent - forward


def _in_groups(comm):
    """By number of ranks, what the two above find on all of them and on groups of them."""
    three_and_one, pairs = comm.Split(comm.rank == 3), comm.Split(comm.rank // 2)
    return {
        "slices": {group.size: _compare(group) for group in (three_and_one, comm)},
        "fc_o": {group.size: _fc_o(group) for group in (pairs, comm)},
    }


@pytest.fixture(scope="module")
def by_rank():
    return real_ranks.run(_in_groups, 4)


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_backward_pass_of_fc_o_sends_less_than_the_forward(by_rank, ranks):
    """Two all-gathers forward, one reduce-scatter backward: with equal dimensions half the bytes."""
    for error, forward, backward in (found["fc_o"][ranks] for found in by_rank):
        assert error < 1e-13
        assert forward == 2 * 3 * (8 + 12) * 8 * (ranks - 1) // ranks
        assert backward == 2 * 3 * 8 * 8 * (ranks - 1) // ranks


class Alone:
    def Get_size(self):
        return 2


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: naive_collect_forward_input(np.zeros((2, 3)), Alone(), 2), ValueError, r"x has shape \(2, 3\)"),
        (lambda: naive_collect_forward_output([[[1.0]]], Alone(), 2), TypeError, "out is a list"),
        (
            lambda: naive_collect_forward_input(np.zeros((1, 1, 2), complex), Alone(), 2),
            TypeError,
            "x has dtype complex",
        ),
        (
            lambda: naive_collect_forward_input(np.zeros((1, 1, 2)), Alone(), 4),
            ValueError,
            "mp_size is 4, but mp_comm has 2",
        ),
        (
            lambda: naive_collect_backward_output(np.zeros((1, 1, 5)), 0, 2),
            ValueError,
            "output_grad is 5, which mp_size 2",
        ),
        (lambda: naive_collect_backward_output(np.zeros((1, 1, 4)), 2, 2), ValueError, "mp_group_idx is 2"),
        (lambda: naive_collect_backward_x(np.zeros((1, 1, 5)), Alone(), 2), ValueError, "grad_x is 5, which mp_size 2"),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()
