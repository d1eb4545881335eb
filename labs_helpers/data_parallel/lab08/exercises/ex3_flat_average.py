"""Lab 08, exercise 3: one all-reduce for all gradients of a dtype."""

import torch
import torch.distributed as dist


def flat_average(model, group):
    """Average the gradients as in average_gradients, with one all-reduce per dtype.

    Copy all gradients of one dtype into one flat tensor, and send that tensor. Afterwards, every
    .grad is a view into it, in the shape of its parameter, so nothing is copied back. Shared and
    frozen parameters, and a .grad of None, count as in exercise 2. A model may have parameters of
    several dtypes. Parameters do not change.
    """
    # 1. Group the trained parameters by dtype, in the same order on every rank.
    # 2. Join the flattened gradients with torch.cat, all-reduce once, and take the mean.
    # 3. Use split to cut the flat tensor into views.
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
