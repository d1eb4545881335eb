"""Lab 08, exercise 8: several micro-batches, one message per bucket, then clipping."""

import torch


def accumulated(micro_batches, loss_of, parameters, finish, no_sync, max_norm):
    """The gradients of one step over all micro-batches, clipped; returns their norm before that.

    micro_batches: this rank's list of tensors (samples, …), some with more samples than others; it
    stays as it is. All ranks have as many micro-batches, and as many samples in all.
    loss_of(batch): the mean loss of its samples. parameters: the trained ones, whose .grad is None
    at first. finish, no_sync: of exercise 6. Afterwards the .grad are the gradient of the mean loss
    over all samples of all ranks, scaled down to max_norm if its norm is larger: what one process
    gives for all samples together. Each micro-batch has a forward and a backward pass of its own,
    done before the next one begins; each bucket is sent once, if possible during the last of them.
    torch.nn.utils.clip_grad_norm_ clips, and returns the norm.
    """
    # 1. What does a micro-batch of 3 of 8 samples contribute to the mean over 8?
    # 2. Which of the backward passes send?
    # 3. Of which gradients is the norm?
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
