"""Lab 07, exercise 6: the backward pass of the input's all-gather."""

import numpy as np


def naive_collect_backward_x(grad_x, mp_comm, mp_size):
    """Return this rank's slice of the sum of grad_x over all ranks.

    grad_x: (batch, length, features), in any memory order, is the contribution of this rank's
    columns of the weight to the gradient of the whole input. Returns a (batch, length, features /
    mp_size) array of the same dtype, contiguous in C order or in grad_x's own order: the sum over
    the ranks, for the features that this rank held before the all-gather. mp_size divides
    features. Do not change grad_x.

    mp_comm.Reduce_scatter_block(send, recv) adds up the arrays of all ranks, and gives rank 0 the
    first 1 / mp_size of the sum in memory, rank 1 the next, and so on. Its arrays must be
    contiguous. Call one collective, and send no more bytes than this one does.
    """
    # 1. In memory, each row holds a few of this rank's features. Which order of the axes puts all
    #    of them next to each other?
    # 2. Send an array that really has this order in memory.
    ### BEGIN SOLUTION
    batch, length, features = grad_x.shape
    blocks = grad_x.reshape(batch, length, mp_size, features // mp_size).transpose(2, 0, 1, 3)
    mine = np.empty((batch, length, features // mp_size), grad_x.dtype)
    mp_comm.Reduce_scatter_block(np.ascontiguousarray(blocks), mine)
    return mine
    ### END SOLUTION
