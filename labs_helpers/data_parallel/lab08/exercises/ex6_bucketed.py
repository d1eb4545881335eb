"""Lab 08, exercise 6: start a bucket's all-reduce as soon as the bucket is full."""

from contextlib import contextmanager

import torch.distributed as dist

from labs_helpers.data_parallel.lab08.bucket import Bucket


def bucketed(model, group, buckets):
    """Send one message per bucket, during backward if possible; return (finish, no_sync).

    buckets: the return value of make_buckets. Send a bucket during backward when it and all buckets
    before it are complete; finish() sends the rest, in the same order. A parameter that this rank
    has not used counts as 0. After finish(), every .grad is the mean, and a view into its bucket's
    `flat`. Inside `with no_sync():`, backward adds to this rank's gradients and sends nothing.
    """
    buckets = [Bucket(parameters) for parameters in buckets]
    bucket_of = {p: bucket for bucket in buckets for p in bucket.parameters}
    under_way, synchronize = [], True  # handles of the buckets sent so far, in bucket order

    def send(bucket):
        """Move the bucket's gradients into its views, and start its all-reduce."""
        # 1. A .grad may be None, the view itself, or another tensor. What do you do with each?
        ### BEGIN SOLUTION
        for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
            if parameter.grad is None:
                view.zero_()
            else:
                view.copy_(parameter.grad)
            parameter.grad = view
        under_way.append(dist.all_reduce(bucket.flat, group=group, async_op=True))
        ### END SOLUTION

    def arrived(parameter):
        """Autograd calls this when parameter.grad is complete."""
        # 2. Which buckets may you send now, and in which order? When must you send none?
        ### BEGIN SOLUTION
        if not synchronize:
            return
        bucket_of[parameter].missing -= 1
        while len(under_way) < len(buckets) and buckets[len(under_way)].missing == 0:
            send(buckets[len(under_way)])
        ### END SOLUTION

    def finish():
        # 3. Send the remaining buckets, wait, take the means, and prepare the next step.
        ### BEGIN SOLUTION
        for bucket in buckets[len(under_way) :]:
            send(bucket)
        for bucket, work in zip(buckets, under_way, strict=True):
            work.wait()
            bucket.flat /= dist.get_world_size(group)
            bucket.missing = len(bucket.parameters)
        under_way.clear()
        ### END SOLUTION

    @contextmanager
    def no_sync():
        nonlocal synchronize
        # 4. Switch sending off, and switch it on again however the block ends.
        ### BEGIN SOLUTION
        synchronize = False
        try:
            yield
        finally:
            synchronize = True
        ### END SOLUTION

    for parameter in bucket_of:
        parameter.register_post_accumulate_grad_hook(arrived)
    return finish, no_sync
