"""Lab 06, exercise 4: the chunks go around once more, and the two rings make an all-reduce."""

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.lab06.exercises.ex3_ring_reduce_scatter import ring_reduce_scatter


def ring_allgather(comm, data):
    """Give every rank all chunks of `data`, in size − 1 steps; at first rank r has chunk r.

    data: a contiguous vector; the function works in place.
    """
    # 1. Send the chunk that you got last to the right; start with your own.
    # 2. Receive the one before it from the left, straight into its place.
    ### BEGIN SOLUTION
    rank, size = comm.rank, comm.size
    bounds = chunk_bounds(len(data), size)
    right, left = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        mine = data[slice(*bounds[(rank - step) % size])]
        next_one = data[slice(*bounds[(rank - step - 1) % size])]
        comm.Sendrecv(mine, dest=right, recvbuf=next_one, source=left)
    ### END SOLUTION


def ring_allreduce(comm, send, recv, op):
    """Reduce all ranks' `send` with op into every rank's recv: one ring after the other.

    send, recv: contiguous vectors of n ≥ 0 elements; send must not change. op: a NumPy ufunc.
    """
    # Both of your functions work in place. In which vector should they?
    ### BEGIN SOLUTION
    recv[:] = send
    ring_reduce_scatter(comm, recv, op)
    ring_allgather(comm, recv)
    ### END SOLUTION
