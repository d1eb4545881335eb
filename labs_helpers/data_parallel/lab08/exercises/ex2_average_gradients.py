"""Lab 08, exercise 2: one all-reduce per parameter, after backward."""

import torch
import torch.distributed as dist


def average_gradients(model, group):
    """Replace the .grad of every trained parameter by its mean over the ranks of `group`.

    Every rank of the group calls this function after backward, and makes one all-reduce per trained
    parameter. Send a weight that two layers share once, and a frozen one (requires_grad False) not
    at all. If this rank has not used a parameter, its .grad is None. Such a gradient counts as 0,
    and receives the mean as on the other ranks. Parameters do not change.
    """
    # 1. Which parameters? Every rank has to make the same calls in the same order.
    # 2. dist.all_reduce(tensor, group=group) writes the sum into every rank's tensor.
    # 3. Turn the sum into the mean. How many ranks are in this group?
    ### BEGIN SOLUTION
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad, group=group)
            parameter.grad /= dist.get_world_size(group)
    ### END SOLUTION
