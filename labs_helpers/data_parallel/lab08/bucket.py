"""The bucket of exercise 6: parameters, and views of their gradients in one flat tensor."""

import torch


class Bucket:
    """Parameters whose gradients travel together.

    flat: all gradients in one tensor. views[i]: the part of flat for the gradient of parameters[i],
    in its shape. missing: the number of gradients that have yet to arrive in this step.
    """

    def __init__(self, parameters):
        first, sizes = parameters[0], [p.numel() for p in parameters]
        self.parameters = parameters
        self.flat = torch.zeros(sum(sizes), dtype=first.dtype, device=first.device)
        parts = self.flat.split(sizes)
        self.views = [part.view(p.shape) for p, part in zip(parameters, parts, strict=True)]
        self.missing = len(parameters)
