"""Lab 07, exercise 6: the way back through the input's all-gather."""

import numpy as np


def naive_collect_backward_x(grad_x, mp_comm, mp_size):
    """This rank's slice of the sum of all ranks' grad_x.

    grad_x: (batch, length, features), in any order in memory: what this rank's columns of the
    weight contribute to the gradient of the whole input → (batch, length, features / mp_size) of
    the same dtype, contiguous in C order or in grad_x's own: of the sum, the features that this
    rank had before the all-gather.
    mp_comm.Reduce_scatter_block(send, recv) adds up all ranks' send and leaves the first 1 /
    mp_size of its memory on rank 0, the next on rank 1, and so on. It takes contiguous arrays.
    mp_size divides features; grad_x stays as it is. Make one collective, and send no more
    bytes than this one does.
    """
    # 1. A rank's features lie in pieces, one per row. In which order of axes do they lie together?
    # 2. Send an array that is really in that order in memory.
    ### BEGIN SOLUTION
    batch, length, features = grad_x.shape
    blocks = grad_x.reshape(batch, length, mp_size, features // mp_size).transpose(2, 0, 1, 3)
    mine = np.empty((batch, length, features // mp_size), grad_x.dtype)
    mp_comm.Reduce_scatter_block(np.ascontiguousarray(blocks), mine)
    return mine
    ### END SOLUTION
