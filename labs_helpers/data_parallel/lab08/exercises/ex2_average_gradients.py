"""Lab 08, exercise 2: one all-reduce per parameter, after backward."""

import torch
import torch.distributed as dist


def average_gradients(model, group):
    """The .grad of every trained parameter becomes the mean over the ranks of `group`.

    Every rank of the group calls it after backward, and makes one all-reduce for each trained
    parameter: a weight that two layers share is one, a frozen one (requires_grad False) is none. A
    parameter that this rank has not used has .grad None. It counts as 0 here, and gets the mean as
    on the other ranks. Parameters stay as they are.
    """
    # 1. Which parameters? Every rank has to make the same calls in the same order.
    # 2. dist.all_reduce(tensor, group=group) writes the sum into everybody's tensor.
    # 3. From the sum to the mean: how many ranks has this group?
    ### BEGIN SOLUTION
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad, group=group)
            parameter.grad /= dist.get_world_size(group)
    ### END SOLUTION
