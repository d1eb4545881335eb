"""Lab 09, exercise 7: ZeRO-3, which keeps parameters whole only while their module computes."""

import torch
import torch.distributed as dist
from torch import nn


def shard_module(module, whole, group):
    """Return shard, the nn.Parameter that this rank keeps between uses of the module.

    whole: (n,), the module's parameters in flat memory; the parameters are views of it. n is a
    multiple of the number of ranks, and rank 0 owns the first part. whole has memory only while
    the module computes, forward or backward. whole.untyped_storage().resize_(0) frees the memory,
    and resize_(whole.nbytes) allocates it again under the same views. shard is a copy of this
    rank's part of whole.
    Each backward pass adds this rank's part of the mean gradient over the ranks to shard.grad.
    Afterwards the .grad of every parameter is None, and no whole gradient remains. Each forward
    pass uses one all-gather of n elements; each backward pass uses one all-gather and one
    reduce-scatter of n elements. All parameters receive a gradient in every backward pass.
    """
    ### BEGIN SOLUTION
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    shard = nn.Parameter(whole.chunk(size)[rank].clone())
    parameters = list(module.parameters())
    here = []
    ### END SOLUTION

    def gather(*_):
        # 1. Allocate memory for whole, and fill it with the shards of all ranks.
        ### BEGIN SOLUTION
        whole.untyped_storage().resize_(whole.nbytes)
        dist.all_gather_into_tensor(whole, shard.detach(), group=group)
        ### END SOLUTION

    def free(*_):
        # 2. Free the memory of whole.
        ### BEGIN SOLUTION
        whole.untyped_storage().resize_(0)
        ### END SOLUTION

    def arrived(parameter):
        # 3. After the last gradient, add this rank's part of the mean to shard.grad, and free
        #    everything that is whole.
        ### BEGIN SOLUTION
        here.append(parameter)
        if len(here) < len(parameters):
            return
        here.clear()
        flat = torch.cat([p.grad.reshape(-1) for p in parameters]) / size
        flat = nn.functional.pad(flat, (0, whole.numel() - flat.numel()))
        mine = torch.empty_like(shard)
        dist.reduce_scatter_tensor(mine, flat, group=group)
        shard.grad = mine if shard.grad is None else shard.grad + mine
        for p in parameters:
            p.grad = None
        free()
        ### END SOLUTION

    # 4. Register each function with the right hook. 5. Free whole until the first forward pass.
    ### BEGIN SOLUTION
    module.register_forward_pre_hook(gather)
    module.register_forward_hook(free)
    module.register_full_backward_pre_hook(gather)
    for p in parameters:
        p.register_post_accumulate_grad_hook(arrived)
    free()
    ### END SOLUTION
    return shard
