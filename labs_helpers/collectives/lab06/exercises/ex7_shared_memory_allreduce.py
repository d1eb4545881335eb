"""Lab 06, exercise 7: ranks that share their memory need no messages."""

from labs_helpers.collectives.chunks import chunk_bounds


def shared_memory_allreduce(comm, shared, send, recv, op):
    """Reduce all ranks' `send` with op into every rank's recv, through memory that they share.

    shared: a matrix of size × n elements that all ranks read and write, one row per rank; the
    next call uses it again. send, recv: each rank's own vectors of n elements. op: a NumPy ufunc.
    Each rank reduces one chunk. Use comm only for comm.Barrier(), which no rank leaves before all
    have entered it.
    """
    # 1. Put your vector into your row.
    # 2. Reduce your chunk of all rows. Where can the result go without disturbing anybody?
    # 3. Collect all ranks' chunks into recv.
    # Between which of these steps must all ranks wait for each other? And before the next call?
    ### BEGIN SOLUTION
    bounds = chunk_bounds(len(send), comm.size)
    mine = slice(*bounds[comm.rank])
    shared[comm.rank] = send
    comm.Barrier()  # all rows are there
    for row in range(comm.size):
        if row != comm.rank:
            # Chunk r of row r is read by rank r alone, so the result may lie there.
            op(shared[comm.rank, mine], shared[row, mine], out=shared[comm.rank, mine])
    comm.Barrier()  # all chunks are reduced
    for rank, (start, stop) in enumerate(bounds):
        recv[start:stop] = shared[rank, start:stop]
    comm.Barrier()  # all have read, so the next call may write
    ### END SOLUTION
