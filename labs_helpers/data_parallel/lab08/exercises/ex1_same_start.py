"""Lab 08, exercise 1: start every replica from rank 0's parameters and buffers."""

import torch.distributed as dist


def same_start(model, group):
    """Copy the model of rank 0 of `group` into every rank's model, in place.

    group: a torch.distributed process group. Every rank in it calls this function. A rank's number
    within the group may differ from its number among all ranks. The models agree in the names,
    shapes, dtypes and order of their tensors, but not in the values. Afterwards, all tensors that
    forward or evaluation reads are equal on all ranks. Send a weight that two layers share once.
    Parameters and buffers must remain the same objects in the same memory. Some of them have gaps
    in memory, like a slice of a larger tensor; collectives do not accept those.
    """
    # 1. Which tensors does a model contain besides its trained parameters?
    # 2. dist.broadcast(tensor, group=group, group_src=0) writes rank 0's values into every rank's
    #    tensor. How do you send a tensor with gaps?
    ### BEGIN SOLUTION
    for tensor in [*model.parameters(), *model.buffers()]:
        values = tensor.detach().contiguous()
        dist.broadcast(values, group=group, group_src=0)
        tensor.detach().copy_(values)
    ### END SOLUTION
