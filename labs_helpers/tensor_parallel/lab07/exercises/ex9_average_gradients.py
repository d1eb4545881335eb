"""Lab 07, exercise 9: copies of a model that stay equal."""

import torch


def average_gradients(gradients, dp_group):
    """The mean of every gradient over the data-parallel ranks, as a list of new tensors.

    gradients: this rank's list of float32 tensors of any shapes, some of them not contiguous; on
    all ranks of dp_group the same shapes in the same order. Each rank's loss is the mean over its
    own samples, and all have as many. All gradients travel together, in a single
    dp_group.all_reduce. They stay as they are.
    """
    # 1. One vector of all of them. 2. One all-reduce: of sums, or of means?
    # 3. Back into tensors of the old shapes.
    ### BEGIN SOLUTION
    vector = torch.cat([gradient.reshape(-1) for gradient in gradients])
    mean = dp_group.all_reduce(vector) / dp_group.size
    parts = mean.split([gradient.numel() for gradient in gradients])
    return [part.reshape(old.shape) for part, old in zip(parts, gradients, strict=True)]
    ### END SOLUTION
