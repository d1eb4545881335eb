"""Lab 09, exercise 10: the reference of the transfer exercise, kept out of student copies."""

import torch
import torch.distributed as dist


def hybrid_step(whole, gradients, optimizer, shard, max_norm, shard_group, replica_group):
    """Run one step with shards inside a node and replicas across nodes; return the norm, ().

    shard_group: the ranks of this node, which partition the states. replica_group: the ranks that
    hold the same shard, one per node. whole: (n,), all parameters, identical on all ranks; n is a
    multiple of the size of shard_group. shard: an nn.Parameter of (n / size,), this rank's part of
    whole, with whole's memory; rank 0 of shard_group owns the first part. optimizer: an optimizer
    from torch.optim over [shard]. gradients: an iterator over this rank's whole gradients (n,), one
    per micro-batch, at least one. You may overwrite them; keep at most one at a time.
    After the step, whole is updated on all ranks with the mean over all ranks and micro-batches,
    clipped to max_norm as in exercise 8, and shard.grad is None. Return the norm of the mean
    gradient before clipping. Links between nodes are slow: per step, send only one all-reduce of
    one shard across them, however many micro-batches there are. Inside a node, send no more
    than necessary.
    """
    ### BEGIN SOLUTION
    total, count = torch.zeros_like(shard.data), 0
    for gradient in gradients:
        mine = torch.empty_like(total)
        dist.reduce_scatter_tensor(mine, gradient, group=shard_group)
        total += mine
        count += 1
    dist.all_reduce(total, group=replica_group)
    total /= count * dist.get_world_size(shard_group) * dist.get_world_size(replica_group)
    squares = total.square().sum()
    dist.all_reduce(squares, group=shard_group)
    norm = squares.sqrt()
    shard.grad = total * (max_norm / (norm + 1e-6)).clamp(max=1.0)
    optimizer.step()
    optimizer.zero_grad()
    dist.all_gather_into_tensor(whole, shard.data, group=shard_group)
    return norm
    ### END SOLUTION
