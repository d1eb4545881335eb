"""Lab 09, exercise 4: one step of ZeRO-1."""

import torch
import torch.distributed as dist


def zero1_step(whole, gradient, optimizer, tensors, group):
    """Run one ZeRO-1 step: update this rank's shard and collect the shards of all other ranks.

    whole: (n,), all parameters in flat memory, identical on all ranks of `group`. n is a multiple
    of the number of ranks, and rank 0 owns the first shard. gradient: (n,), this rank's gradient,
    with the dtype of whole; you may overwrite it. tensors: nn.Parameters, the consecutive pieces
    of this rank's shard; they share whole's memory, and padding may follow them. optimizer: an
    optimizer from torch.optim over all tensors. After the step, whole is updated on all ranks with
    the mean of their gradients, and the .grad of every tensor is None. Do no redundant work: one
    reduce-scatter and one all-gather of n elements, and each rank updates only its shard.
    """
    # 1. dist.reduce_scatter_tensor(mine, gradient, group=group) gives this rank's part of the sum.
    # 2. Set the .grad of each tensor. 3. Step the optimizer. 4. dist.all_gather_into_tensor.
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
