"""Lab 09, exercise 7: ZeRO-3, parameters that are whole only while their module computes."""

import torch
import torch.distributed as dist
from torch import nn


def shard_module(module, whole, group):
    """shard: an nn.Parameter, all that this rank keeps of the module's parameters between uses.

    whole: (n,), on whose memory the module's parameters lie one behind the other, as views; n is a
    multiple of the group's size, and rank 0's part of it comes first. It has memory only while the
    module computes, forward or backward: whole.untyped_storage().resize_(0) frees it, and
    resize_(whole.nbytes) gives it new memory, on which the same views lie. shard is a copy of this
    rank's part. After a backward pass shard.grad is this rank's part of the mean gradient over the
    ranks, added to what it was, every parameter's .grad is None, and no whole gradient is kept
    anywhere. Each forward and each backward pass has one all-gather, each backward pass one
    reduce-scatter, of n elements. All parameters get a gradient in every backward pass.
    """
    ### BEGIN SOLUTION
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    shard = nn.Parameter(whole.chunk(size)[rank].clone())
    parameters = list(module.parameters())
    here = []
    ### END SOLUTION

    def gather(*_):
        # 1. Memory for the whole, filled from all ranks' shards.
        ### BEGIN SOLUTION
        whole.untyped_storage().resize_(whole.nbytes)
        dist.all_gather_into_tensor(whole, shard.detach(), group=group)
        ### END SOLUTION

    def free(*_):
        # 2. No memory any more.
        ### BEGIN SOLUTION
        whole.untyped_storage().resize_(0)
        ### END SOLUTION

    def arrived(parameter):
        # 3. Is it the last gradient? Then: this rank's part of the mean, to shard.grad; free all
        #    that is whole.
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

    # 4. Which hook is for which moment? 5. Until the first forward pass nothing is whole.
    ### BEGIN SOLUTION
    module.register_forward_pre_hook(gather)
    module.register_forward_hook(free)
    module.register_full_backward_pre_hook(gather)
    for p in parameters:
        p.register_post_accumulate_grad_hook(arrived)
    free()
    ### END SOLUTION
    return shard
