"""Test reading another rank's memory, and the fallback if the system forbids it."""

import numpy as np

from labs_helpers.collectives.interface import alltoall
from labs_helpers.collectives.shared_memory import single_copy
from labs_helpers.collectives.shared_memory.alltoall import SINGLE_COPY_BYTES
from labs_helpers.launch.mpirun import run_on_ranks


def _long_blocks(comm):
    m = SINGLE_COPY_BYTES // 8 + 1
    recv = np.empty(m * comm.size)
    wrong = []
    for turn in range(5):
        send = np.repeat(np.arange(comm.size) * 100.0 + comm.rank + turn * 1e4, m)
        alltoall(comm, send, recv, "shared_memory")
        expected = np.repeat(np.arange(comm.size) + comm.rank * 100.0 + turn * 1e4, m)
        send[:] = -1  # as soon as the call is over
        if not np.array_equal(recv, expected):
            wrong.append(turn)
    return wrong


def test_long_blocks():
    assert run_on_ranks(_long_blocks, 3, timeout=100) == [[], [], []]


def test_without_the_system_s_leave_the_blocks_go_through_shared_memory():
    def forbidden(comm):
        single_copy._process_vm_readv = lambda: None
        return _long_blocks(comm)

    assert run_on_ranks(forbidden, 3, timeout=100) == [[], [], []]


class Alone:
    """A communicator of one rank."""

    def Get_size(self):
        return 1

    def allgather(self, value):
        return [value]


def test_memory_that_is_not_there_is_an_error_and_no_crash():
    neighbours = single_copy.Neighbours(Alone())
    if neighbours.allowed:
        into = np.zeros(4)
        neighbours.read([(0, single_copy.address_of(np.arange(4.0)), single_copy.address_of(into), into.nbytes)])
        try:
            neighbours.read([(0, 8, single_copy.address_of(into), into.nbytes)])
        except OSError as error:
            assert "memory of rank 0 cannot be read" in str(error)
        else:
            raise AssertionError("read from nowhere")


def test_another_process_s_memory_is_not_taken_for_the_rank_s():
    neighbours = single_copy.Neighbours(Alone())
    zeros = np.zeros(2)
    assert not neighbours._reads(0, single_copy.address_of(zeros), b"\1" * 16)
