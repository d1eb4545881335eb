"""Lab 09, exercise 6: ZeRO-2, gradients that no rank keeps whole."""

from functools import partial

import torch
import torch.distributed as dist


def reduce_in_backward(buckets, group):
    """finish(): from now on every backward pass leaves the mean gradient's shard and nothing whole.

    buckets: lists of parameters, each in one of them; all of them get a gradient in each backward
    pass. As soon as a bucket's last gradient is there, one reduce-scatter of the bucket starts, and
    its parameters' .grad are None. It sends their gradients flattened one behind the other, with as
    few zeros behind them as make equal shards. Backward goes on meanwhile (async_op=True).
    finish(): is called behind each backward pass, waits for what is on its way, and returns this
    rank's shard of each bucket's mean gradient over the ranks of `group`: added up over all
    backward passes since the hooks were registered.
    """
    ### BEGIN SOLUTION
    size = dist.get_world_size(group)
    missing = [len(bucket) for bucket in buckets]
    shards = [None] * len(buckets)
    started = []
    ### END SOLUTION

    def arrived(number, parameter):
        # 1. Is it the bucket's last one? Then the next pass begins anew.
        # 2. One flat gradient, divided by the ranks; the parameters let go of theirs.
        # 3. Start the reduce-scatter. What does finish() need later?
        ### BEGIN SOLUTION
        missing[number] -= 1
        if missing[number] > 0:
            return
        missing[number] = len(buckets[number])
        flat = torch.cat([p.grad.reshape(-1) for p in buckets[number]]) / size
        for p in buckets[number]:
            p.grad = None
        flat = torch.nn.functional.pad(flat, (0, -flat.numel() % size))
        mine = torch.empty_like(flat[: flat.numel() // size])
        work = dist.reduce_scatter_tensor(mine, flat, group=group, async_op=True)
        started.append((number, mine, work))
        ### END SOLUTION

    def finish():
        # 4. Wait, and add to what earlier passes have left.
        ### BEGIN SOLUTION
        for number, mine, work in started:
            work.wait()
            shards[number] = mine if shards[number] is None else shards[number] + mine
        started.clear()
        return list(shards)
        ### END SOLUTION

    for number, bucket in enumerate(buckets):
        for parameter in bucket:
            parameter.register_post_accumulate_grad_hook(partial(arrived, number))
    return finish
