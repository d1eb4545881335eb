"""The answer to lab 06's transfer exercise."""

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds


def recursive_halving(comm, data, op):
    """Reduce `data` over all ranks, in place, and leave chunk r on rank r, in log2(size) steps.

    The arguments are as in ring_reduce_scatter, but size is a power of two ≥ 1. In the first step
    each rank exchanges half of the vector with the rank size / 2 away, in the next step a quarter
    with the rank size / 4 away, and so on. It sends the same bytes as the ring in fewer messages.
    """
    # Write the whole function. Which half do you keep, and which does your partner want?
    ### BEGIN SOLUTION
    rank, bounds = comm.rank, chunk_bounds(len(data), comm.size)
    first, distance = 0, comm.size // 2  # the chunks first … first + 2·distance − 1 are still mine
    while distance:
        lower = slice(bounds[first][0], bounds[first + distance - 1][1])
        upper = slice(bounds[first + distance][0], bounds[first + 2 * distance - 1][1])
        keep, give = (upper, lower) if rank & distance else (lower, upper)
        part = np.empty_like(data[keep])
        comm.Sendrecv(data[give], dest=rank ^ distance, recvbuf=part, source=rank ^ distance)
        op(data[keep], part, out=data[keep])
        first += rank & distance
        distance //= 2
    ### END SOLUTION
