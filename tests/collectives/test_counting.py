"""Test that a counting communicator counts exactly what its rank sends."""

import os
import sys

import numpy as np
import pytest

from labs_helpers.collectives.counting import CountingComm
from labs_helpers.launch.process import run
from labs_helpers.practice.ranks import practice

REAL = """
import numpy as np
from mpi4py import MPI
from labs_helpers.collectives.counting import CountingComm
comm = CountingComm(MPI.COMM_SELF)
got = np.zeros(5)
comm.Sendrecv(np.arange(5.0), 0, 0, got, source=0, recvtag=0)
comm.Isend(np.zeros(3), MPI.PROC_NULL).Wait()
request = comm.Irecv(got[:2], 0)
comm.Send([np.ones(4), 2, MPI.DOUBLE], dest=0, tag=3)
request.Wait()
comm.Barrier()

from labs_helpers.practice.ranks import practice
def with_constants(comm):
    status = MPI.Status()
    request = comm.Isend([np.ones(2), MPI.DOUBLE], comm.rank, 3)
    comm.Recv(np.zeros(4), MPI.ANY_SOURCE, MPI.ANY_TAG, status)
    request.Wait()
    comm.Recv(np.zeros(4), MPI.PROC_NULL)
    return status.source, status.tag, status.Get_count(MPI.DOUBLE)
print("practice", practice(with_constants, 2).results)
print("counted", comm.bytes_sent, comm.messages_sent, comm.rank, comm.Get_size(), got.tolist())
"""


def test_bytes_and_messages_of_practice_ranks():
    def all_ways(comm):
        counting, block, got = CountingComm(comm), np.zeros(2), np.zeros(2)
        other = 1 - counting.rank
        counting.Sendrecv(block, other, 0, got, other)
        for send in (counting.Isend, counting.Issend):
            request = send(block[:1], other)
            counting.Recv(got, source=other)
            request.Wait()
        for send in (counting.Send, counting.Ssend):
            request = counting.Irecv(got, other)
            send(block, dest=other, tag=2)
            request.Wait()
        counting.Send(block, -2)  # MPI.PROC_NULL, of Open MPI
        counting.Barrier()
        return counting.bytes_sent, counting.messages_sent

    ran = practice(all_ways, 2)
    assert ran.results == [(64, 5)] * 2 == list(zip(ran.bytes_sent, ran.messages_sent, strict=True))


def test_reset_and_what_cannot_be_counted():
    def some(comm):
        counting = CountingComm(comm)
        counting.Sendrecv(np.zeros(1), counting.rank, 0, np.zeros(1), counting.Get_rank())
        counting.reset()
        with pytest.raises(AttributeError, match="Send, Ssend.*not 'Allreduce'"):
            counting.Allreduce(np.zeros(1), np.zeros(1))
        return counting.bytes_sent, counting.messages_sent, counting.size

    assert practice(some, 1).results == [(0, 0, 1)]


def test_on_a_real_rank_and_practice_ranks_with_mpi4pys_own_constants():
    # Alone and with itself: a process that no mpirun has started leaves its shared memory behind.
    env = {**os.environ, "OMPI_MCA_btl": "self", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    told = run([sys.executable, "-c", REAL], timeout=60, env=env)
    assert "counted 56 2 0 1 [1.0, 1.0, 2.0, 3.0, 4.0]" in told
    assert "practice [(0, 3, 2), (1, 3, 2)]" in told
