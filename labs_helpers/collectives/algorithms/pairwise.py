"""All-to-all by pairwise exchange: in step s every rank sends to the rank s above it and receives from the rank s
below.

N − 1 messages per rank of n/N elements each: time (N − 1)(α + n/N·β) (Thakur, Rabenseifner, Gropp 2005, §3.4). In each
step every rank sends to one partner and receives from one, for odd and even N.
"""

from labs_helpers.collectives.algorithms.messages import exchange


def alltoall(comm, source, target) -> None:
    """Exchange blocks. source: (n,), block r of n/N elements is for rank r. target: (n,), block r comes from rank r."""
    size, rank = comm.Get_size(), comm.Get_rank()
    outgoing, incoming = source.reshape(size, -1), target.reshape(size, -1)
    incoming[rank] = outgoing[rank]
    for step in range(1, size):
        dest, origin = (rank + step) % size, (rank - step) % size
        exchange(comm, outgoing[dest], dest, incoming[origin], origin)
