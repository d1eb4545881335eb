"""Lab 09, exercise 8: the norm of a gradient that no rank has."""

import torch
import torch.distributed as dist


def clip_shards(shards, max_norm, group):
    """Scales the whole gradient to a norm of at most max_norm; returns the norm that it had, ().

    shards: a list of this rank's shards of the mean gradient, (n,) each, in float32 or bfloat16,
    padding being 0. Together all ranks' shards are the whole. They are scaled in place, by the same
    factor everywhere: max_norm / (norm + 1e-6), as torch.nn.utils.clip_grad_norm_ has it, and never
    more than 1. The norm is float32, the same on all ranks, added up in float32. One all-reduce
    of one number.
    """
    # 1. What can be added up over shards and over ranks? 2. Which factor? Never up.
    ### BEGIN SOLUTION
    squares = torch.stack([shard.float().square().sum() for shard in shards]).sum()
    dist.all_reduce(squares, group=group)
    norm = squares.sqrt()
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for shard in shards:
        shard.mul_(factor)
    return norm
    ### END SOLUTION
