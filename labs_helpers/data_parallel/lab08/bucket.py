"""A bucket of exercise 6: parameters, and the places of their gradients in one flat tensor."""

import torch


class Bucket:
    """flat: all gradients, one behind the other. views[i]: where that of parameters[i] lies,
    shaped as it. missing: how many gradients have yet to arrive in this step."""

    def __init__(self, parameters):
        first, sizes = parameters[0], [p.numel() for p in parameters]
        self.parameters = parameters
        self.flat = torch.zeros(sum(sizes), dtype=first.dtype, device=first.device)
        parts = self.flat.split(sizes)
        self.views = [part.view(p.shape) for p, part in zip(parameters, parts, strict=True)]
        self.missing = len(parameters)
