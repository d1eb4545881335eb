"""Broadcast along a binomial tree: in each round, every rank that has the data sends it to one that does not.

⌈log₂N⌉ rounds of n elements: time ⌈log₂N⌉(α + nβ). N − 1 messages in all; the root sends ⌈log₂N⌉ of them.
"""

from labs_helpers.collectives.algorithms.messages import receive, send


def broadcast(comm, data, root: int) -> None:
    """Broadcast data: (n,), read at the root and written everywhere else."""
    size = comm.Get_size()
    place = (comm.Get_rank() - root) % size  # the root has place 0
    distance = 1
    while distance < size and not place & distance:
        distance *= 2
    if place:  # `distance` is the lowest bit of this place; the parent's place lacks that bit
        receive(comm, data, (place - distance + root) % size)
    distance //= 2
    while distance:
        if place + distance < size:
            send(comm, data, (place + distance + root) % size)
        distance //= 2
