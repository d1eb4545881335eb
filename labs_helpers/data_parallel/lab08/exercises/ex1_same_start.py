"""Lab 08, exercise 1: every replica starts from rank 0's parameters and buffers."""

import torch.distributed as dist


def same_start(model, group):
    """Gives every rank's model the values of the model on rank 0 of `group`, in place.

    group: a torch.distributed process group; every rank of it calls this. A rank's number in it
    may be another than among all ranks. The models agree in names, shapes, dtypes and order, and
    differ in values. All that forward or evaluation reads has to be equal afterwards. A weight
    that two layers share is sent once. Parameters and buffers stay the same objects in the same
    memory. Some lie there with gaps, as a slice of something larger; no collective takes those.
    """
    # 1. What does a model have beside the parameters that are trained?
    # 2. dist.broadcast(tensor, group=group, group_src=0) writes rank 0's values into everybody's
    #    tensor. What about one with gaps?
    ### BEGIN SOLUTION
    for tensor in [*model.parameters(), *model.buffers()]:
        values = tensor.detach().contiguous()
        dist.broadcast(values, group=group, group_src=0)
        tensor.detach().copy_(values)
    ### END SOLUTION
