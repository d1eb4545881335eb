"""Lab 06, exercise 5: every rank has a different block for every other rank."""


def pairwise_alltoall(comm, send, recv):
    """Send block j of each rank's `send` to rank j; block i of recv comes from rank i.

    send, recv: contiguous vectors of comm.size equal blocks; send must not change. In each step
    every rank sends one block and receives one, so that no rank is sent two blocks at a time.
    """
    # 1. Cut both vectors into blocks: send.reshape(comm.size, -1) is a view, one row per block.
    # 2. Your own block needs no message.
    # 3. In step s = 1 … size − 1 send to the rank s further on and receive from the one s back.
    ### BEGIN SOLUTION
    rank, size = comm.rank, comm.size
    blocks, arriving = send.reshape(size, -1), recv.reshape(size, -1)
    arriving[rank] = blocks[rank]
    for step in range(1, size):
        dest, source = (rank + step) % size, (rank - step) % size
        comm.Sendrecv(blocks[dest], dest=dest, recvbuf=arriving[source], source=source)
    ### END SOLUTION
