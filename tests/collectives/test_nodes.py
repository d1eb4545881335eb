"""Test that objects cached with communicators are freed before MPI ends, in the same order on all ranks."""

import sys

import cloudpickle

from labs_helpers.launch.mpirun import run_on_ranks

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class _Window:
    """Frees itself as a window does: with all ranks of its communicator."""

    def __init__(self, comm):
        self.comm = comm

    def free(self):
        self.comm.Barrier()


def _keep_in_different_orders(comm):
    """Rank 0 sends the numbers of both and goes on, so that rank 1 may keep the second first."""
    from labs_helpers.collectives.nodes import kept_with

    first, second = comm.Dup(), comm.Dup()
    for each in (first, second) if comm.rank == 0 else (second, first):
        kept_with(each, "window", _Window)


def test_ranks_end_that_kept_windows_in_different_orders():
    run_on_ranks(_keep_in_different_orders, 2, timeout=100)
