"""Lab 09, exercise 4: a step of ZeRO-1."""

import torch
import torch.distributed as dist


def zero1_step(whole, gradient, optimizer, tensors, group):
    """A step of ZeRO-1: every rank updates its shard, and all get the updated parameters.

    whole: (n,), all parameters one behind the other, the same on all ranks of `group`, whose number
    divides n; rank 0's shard comes first. gradient: (n,) of the same dtype, this rank's gradient;
    it may be overwritten. tensors: nn.Parameters, the pieces of this rank's shard, one behind the
    other on whole's own memory (padding may follow). optimizer: one of torch.optim over all
    of them. Afterwards whole is updated on all ranks with the mean of their gradients, and
    every tensor's .grad is None. No rank adds up, updates or sends more than it has to: one
    reduce-scatter and one all-gather of n elements.
    """
    # 1. dist.reduce_scatter_tensor(mine, gradient, group=group): this rank's part of the sum.
    # 2. Each tensor's .grad. 3. The optimizer's step. 4. dist.all_gather_into_tensor.
    ### BEGIN SOLUTION
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    mine = torch.empty_like(gradient[: whole.numel() // size])
    dist.reduce_scatter_tensor(mine, gradient / size, group=group)
    at = 0
    for tensor in tensors:
        tensor.grad = mine[at : at + tensor.numel()]
        at += tensor.numel()
    optimizer.step()
    optimizer.zero_grad()
    shard = whole.chunk(size)[rank]
    dist.all_gather_into_tensor(whole, shard, group=group)
    ### END SOLUTION
