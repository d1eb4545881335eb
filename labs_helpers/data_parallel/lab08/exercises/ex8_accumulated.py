"""Lab 08, exercise 8: several micro-batches, one message per bucket, then clipping."""

import torch


def accumulated(micro_batches, loss_of, parameters, finish, no_sync, max_norm):
    """Accumulate a step's gradients over micro-batches, clip them, and return the unclipped norm.

    micro_batches: this rank's list of tensors (samples, …), which may differ in length; do not
    change it. All ranks have the same number of micro-batches and the same total of samples.
    loss_of(batch): the mean loss over the samples of `batch`. parameters: the trained ones, whose
    .grad is None at first. finish, no_sync: the functions of exercise 6. max_norm: the largest norm
    after clipping. Afterwards, each .grad is the gradient of the mean loss over all samples of all
    ranks, scaled down if the norm of all gradients exceeds max_norm, as if one process had computed
    all samples together. Run forward and backward on one micro-batch at a time, and finish both
    before you begin the next. Send each bucket once, during the last backward pass if possible.
    torch.nn.utils.clip_grad_norm_ clips, and returns the norm before clipping.
    """
    # 1. How much does a micro-batch of 3 samples contribute to the mean over 8?
    # 2. Which backward passes send?
    # 3. Which gradients enter the norm?
    ### BEGIN SOLUTION
    samples = sum(len(batch) for batch in micro_batches)
    for batch in micro_batches[:-1]:
        with no_sync():
            (loss_of(batch) * len(batch) / samples).backward()
    last = micro_batches[-1]
    (loss_of(last) * len(last) / samples).backward()
    finish()
    return torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    ### END SOLUTION
