"""Lab 08, exercise 6: an all-reduce per bucket, as soon as it is full."""

from contextlib import contextmanager

import torch.distributed as dist

from labs_helpers.data_parallel.lab08.bucket import Bucket


def bucketed(model, group, buckets):
    """(finish, no_sync): as `overlapped`, with a message per bucket, some parameters unused.

    buckets: what make_buckets returns. A bucket is sent during backward when it and all buckets
    before it are complete; finish() sends the rest, in the same order. A parameter that this rank
    has not used counts as 0. After finish() every .grad is the mean, and a view into its bucket's
    `flat`. Within `with no_sync():` backward adds to this rank's gradients, and sends nothing.
    """
    buckets = [Bucket(parameters) for parameters in buckets]
    bucket_of = {p: bucket for bucket in buckets for p in bucket.parameters}
    under_way, synchronize = [], True  # handles of the buckets that have been sent, in their order

    def send(bucket):
        """Moves the bucket's gradients into its views, and starts its all-reduce."""
        # 1. Where can a .grad be: nowhere, in the view already, somewhere else?
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
        """Called by autograd when parameter.grad is complete."""
        # 2. Which buckets may go now? In which order, and when none?
        ### BEGIN SOLUTION
        if not synchronize:
            return
        bucket_of[parameter].missing -= 1
        while len(under_way) < len(buckets) and buckets[len(under_way)].missing == 0:
            send(buckets[len(under_way)])
        ### END SOLUTION

    def finish():
        # 3. What is left; then wait and take the mean; then all is set for the next step.
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
        # 4. Off, and on again however the block ends.
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
