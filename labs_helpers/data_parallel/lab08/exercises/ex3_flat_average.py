"""Lab 08, exercise 3: one all-reduce for all gradients."""

import torch
import torch.distributed as dist


def flat_average(model, group):
    """As average_gradients, with a single all-reduce for all gradients of a dtype.

    The gradients of one dtype lie in one flat tensor, which is sent. Afterwards every .grad is a
    view into it, shaped as its parameter: nothing is copied back. Which parameters count, and what
    a .grad of None means, is as in exercise 2. A model may have parameters of several dtypes,
    which stay as they are.
    """
    # 1. The trained parameters, by dtype, in the same order on every rank.
    # 2. torch.cat of what has been flattened; one all-reduce; the mean.
    # 3. split cuts the flat tensor into views.
    ### BEGIN SOLUTION
    by_dtype = {}
    for parameter in model.parameters():
        if parameter.requires_grad:
            by_dtype.setdefault(parameter.dtype, []).append(parameter)
    for parameters in by_dtype.values():
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([grad.reshape(-1) for grad in grads])
        dist.all_reduce(flat, group=group)
        flat /= dist.get_world_size(group)
        parts = flat.split([p.numel() for p in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view(parameter.shape)
    ### END SOLUTION
