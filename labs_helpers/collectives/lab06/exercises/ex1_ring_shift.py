"""Lab 06, exercise 1: every rank passes a block to the right, and none waits forever."""


def ring_shift(comm, send, recv):
    """Pass each rank's block to the rank on its right; the last rank's block goes to rank 0.

    comm: a communicator with comm.rank and comm.size ≥ 1. send, recv: contiguous arrays of the
    same length and dtype. Afterwards recv holds the left neighbor's send.
    """
    # 1. Who is on the right, who is on the left? Both are ranks from 0 to comm.size - 1.
    # 2. comm.Send(send, dest=…) and comm.Recv(recv, source=…). Both wait for the other side, so
    #    some ranks have to receive first: the odd ones.
    # 3. What should happen on a single rank, which is its own neighbor?
    ### BEGIN SOLUTION
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if comm.size == 1:
        recv[:] = send
    elif comm.rank % 2 == 0:
        comm.Send(send, dest=right)
        comm.Recv(recv, source=left)
    else:
        comm.Recv(recv, source=left)
        comm.Send(send, dest=right)
    ### END SOLUTION
