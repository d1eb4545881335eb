"""Lab 06, exercise 2: the all-reduce that everybody writes first."""

import numpy as np


def naive_allreduce(comm, send, recv, op):
    """Reduce all ranks' vectors at rank 0, the root, which then sends the result to all.

    send, recv: contiguous vectors of n ≥ 0 elements; send must not change. op: a NumPy ufunc such
    as np.add or np.maximum: op(a, b, out=a) stores the reduced vector in a. Afterwards every
    rank's recv holds the same result: all ranks' send, reduced with op.
    """
    # 1. Every rank but the root sends its vector to the root.
    # 2. The root receives them one after another into a separate vector, and reduces. Its own
    #    vector counts too.
    # 3. The root sends the result to each of the others.
    ### BEGIN SOLUTION
    if comm.rank == 0:
        recv[:] = send
        part = np.empty_like(send)
        for source in range(1, comm.size):
            comm.Recv(part, source=source)
            op(recv, part, out=recv)
        for dest in range(1, comm.size):
            comm.Send(recv, dest=dest)
    else:
        comm.Send(send, dest=0)
        comm.Recv(recv, source=0)
    ### END SOLUTION
