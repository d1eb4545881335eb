"""Lab 09, exercise 6: ZeRO-2, which reduces gradients during the backward pass."""

from functools import partial

import torch
import torch.distributed as dist


def reduce_in_backward(buckets, shards, group):
    """Install hooks that reduce-scatter gradients during backward, and return finish().

    buckets: lists of parameters; each parameter is in one bucket and receives a gradient in every
    backward pass. Gradients arrive in any order, and those of several buckets may interleave.
    shards: one nn.Parameter of (n,) per bucket, this rank's part of the bucket's flattened
    parameters. On `size` ranks, the shards together have size · n elements, enough for the bucket
    and perhaps some padding at its end. A shard's dtype may differ from the parameters' (float32
    master weights for bfloat16 parameters); average in the dtype of the shard.
    When the last gradient of a bucket arrives, concatenate its gradients, start one reduce-scatter
    of them with async_op=True, and set the .grad of its parameters to None. Backward continues.
    The caller runs finish() after each backward pass. It waits for the collectives and adds this
    rank's part of the mean over the ranks of `group` to each shard's .grad, which may be None.
    After that, no list or buffer of yours may still hold a whole gradient.
    """
    ### BEGIN SOLUTION
    size = dist.get_world_size(group)
    missing = [len(bucket) for bucket in buckets]
    started = []
    ### END SOLUTION

    def arrived(number, parameter):
        # 1. Is this the bucket's last gradient? If so, reset the count for the next pass.
        # 2. Build one flat gradient: the shard's dtype, padded, divided by size. Drop every .grad.
        # 3. Start the reduce-scatter. What does finish() need later?
        ### BEGIN SOLUTION
        missing[number] -= 1
        if missing[number] > 0:
            return
        missing[number] = len(buckets[number])
        mine = torch.empty_like(shards[number])
        flat = torch.cat([p.grad.reshape(-1) for p in buckets[number]]).to(mine.dtype) / size
        for p in buckets[number]:
            p.grad = None
        flat = torch.nn.functional.pad(flat, (0, size * mine.numel() - flat.numel()))
        work = dist.reduce_scatter_tensor(mine, flat, group=group, async_op=True)
        started.append((shards[number], mine, work))
        ### END SOLUTION

    def finish():
        # 4. Wait, and add the result to the gradient from earlier passes.
        ### BEGIN SOLUTION
        for shard, mine, work in started:
            work.wait()
            shard.grad = mine if shard.grad is None else shard.grad + mine
        started.clear()
        ### END SOLUTION

    for number, bucket in enumerate(buckets):
        for parameter in bucket:
            parameter.register_post_accumulate_grad_hook(partial(arrived, number))
    return finish
