"""Lab 06, exercise 3: N − 1 steps around a ring, after which each rank holds one reduced chunk."""

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds


def ring_reduce_scatter(comm, data, op):
    """Reduce chunk r of `data` over all ranks onto rank r, in size − 1 steps around a ring.

    data: a contiguous vector of n ≥ 0 elements, different on each rank. The function works in
    place; afterwards the other chunks hold partial results. op: a NumPy ufunc. Each step sends
    one chunk.
    Source: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, 2009.
    """
    # 1. chunk_bounds(n, size) gives the (start, stop) of each chunk: they may differ by one.
    # 2. In each step send one chunk to the right and receive another from the left, at the same
    #    time: comm.Sendrecv(data[a:b], dest=…, recvbuf=…, source=…). The arriving part needs a
    #    separate buffer of the right length.
    # 3. Reduce what arrived into your chunk. It is the one to send in the next step.
    # 4. The last chunk to arrive has to be chunk `rank`. So which one do you send first?
    ### BEGIN SOLUTION
    rank, size = comm.rank, comm.size
    bounds = chunk_bounds(len(data), size)
    right, left = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        start, stop = bounds[(rank - step - 1) % size]
        own = data[slice(*bounds[(rank - step - 2) % size])]
        part = np.empty_like(own)
        comm.Sendrecv(data[start:stop], dest=right, recvbuf=part, source=left)
        op(own, part, out=own)
    ### END SOLUTION
