"""Lab 07, exercise 9: average gradients, so that all copies of a model stay equal."""

import torch


def average_gradients(gradients, dp_group):
    """Return the mean of every gradient over the data-parallel ranks, as a list of new tensors.

    gradients: this rank's list of float32 tensors of any shapes, some of them not contiguous. All
    ranks of dp_group have the same shapes in the same order. Each rank's loss is the mean over
    its own samples, and every rank has the same number of samples. Send all gradients together,
    in a single dp_group.all_reduce, and do not change them.
    """
    # 1. Join all gradients into one vector. 2. All-reduce it. Does that give a sum or a mean?
    # 3. Split the vector back into tensors of the old shapes.
    ### BEGIN SOLUTION
    vector = torch.cat([gradient.reshape(-1) for gradient in gradients])
    mean = dp_group.all_reduce(vector) / dp_group.size
    parts = mean.split([gradient.numel() for gradient in gradients])
    return [part.reshape(old.shape) for part, old in zip(parts, gradients, strict=True)]
    ### END SOLUTION
