"""Lab 09, exercise 10: the reference of the transfer exercise, which students do not get."""

import torch
import torch.distributed as dist


def hybrid_step(whole, gradients, optimizer, shard, max_norm, shard_group, replica_group):
    """A step with shards inside a node and replicas between nodes; returns the gradient's norm, ().

    There are as many nodes as replica_group has ranks. shard_group: the ranks of this node, among
    which states are cut; replica_group: those that hold the same shard, one per node. whole: (n,),
    all parameters, the same on all ranks; the size of shard_group divides n. shard: an
    nn.Parameter of (n / size,), this rank's part of whole and its memory, rank 0 of shard_group
    having the first; optimizer, one of torch.optim, is over [shard]. gradients: an iterator over
    this rank's whole gradients, (n,), one per micro-batch, 1 or more; each may be overwritten, and
    at most one of them is kept at a time.
    Afterwards whole is updated on all ranks with the mean over all ranks and micro-batches,
    clipped as in exercise 8 to max_norm, and shard.grad is None. The norm is that of the mean,
    before clipping. Links between nodes are slow: per step, whatever the number of micro-batches,
    one all-reduce of a shard crosses them, and nothing else. Inside a node nothing is sent in
    vain.
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
