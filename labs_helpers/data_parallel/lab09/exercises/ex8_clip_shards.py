"""Lab 09, exercise 8: clip by the norm of a gradient that no single rank holds."""

import torch
import torch.distributed as dist


def clip_shards(shards, max_norm, group):
    """Scale the whole gradient to a norm of at most max_norm, and return its original norm.

    shards: a list of tensors (n,), float32 or bfloat16: this rank's shards of the mean gradient,
    with zeros as padding. The shards of all ranks together form the whole gradient. Scale them in
    place, all by the same factor: max_norm / (norm + 1e-6), as in
    torch.nn.utils.clip_grad_norm_, but never more than 1. The norm is a float32 tensor of shape
    (), identical on all ranks. Sum in float32, and use one all-reduce of one number.
    """
    # 1. What can you add over shards and ranks? 2. Compute the factor; never scale up.
    ### BEGIN SOLUTION
    squares = torch.stack([shard.float().square().sum() for shard in shards]).sum()
    dist.all_reduce(squares, group=group)
    norm = squares.sqrt()
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for shard in shards:
        shard.mul_(factor)
    return norm
    ### END SOLUTION
