"""Lab 09, exercise 6: ZeRO-2, gradients that no rank keeps whole."""

from functools import partial

import torch
import torch.distributed as dist


def reduce_in_backward(buckets, shards, group):
    """finish(): every backward pass leaves shards of the mean gradient, and nothing whole.

    buckets: lists of parameters, each in one of them; all get a gradient in every backward pass,
    in any order: those of several buckets may come in turns. shards: for each bucket an
    nn.Parameter of (n,), this rank's part of its parameters one behind the other; size · n is as
    many as they have or, with padding behind the last, a few more. A shard may have another dtype
    than the parameters (float32 master weights beside bfloat16): it is the one to average in.
    As soon as a bucket's last gradient is there, one reduce-scatter of all of them, one behind the
    other, is started with async_op=True, and its parameters' .grad are None. Backward goes on.
    finish() is called after each backward pass. It waits for the collectives, and adds this rank's
    part of the mean over the ranks of `group` to each shard's .grad, which may be None. No whole
    gradient is kept then, not in a list or a buffer of yours either.
    """
    ### BEGIN SOLUTION
    size = dist.get_world_size(group)
    missing = [len(bucket) for bucket in buckets]
    started = []
    ### END SOLUTION

    def arrived(number, parameter):
        # 1. Is it the bucket's last one? Then the next pass begins anew.
        # 2. One flat gradient in the shard's dtype, with padding, divided by the ranks; .grad gone.
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
        # 4. Wait, and add to what earlier passes have left.
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
