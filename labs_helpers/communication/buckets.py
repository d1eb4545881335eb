"""Group parameters whose gradients travel together, and decide where the gradients are stored until then."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

MEGABYTE = 2**20
BUCKET_MB = 25.0  # the default limit of a bucket, which is DistributedDataParallel's


class Bucket:
    """Gradients that travel together from where backward stored them, without copies or extra memory."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        self.arrived: set[int] = set()  # indices of the parameters that have a gradient in this step

    @property
    def full(self) -> bool:
        return len(self.arrived) == len(self.parameters)

    def gather(self) -> list[Tensor]:
        """Return what to send: contiguous tensors on the gradients' memory. A parameter without a gradient gets 0."""
        gradients = []
        for p in self.parameters:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dense = p.grad if p.grad.is_contiguous() else p.grad.permute(memory_order(p.grad))
            if not dense.is_contiguous():
                dense = p.grad = p.grad.contiguous()
            gradients.append(dense)
        return gradients


class FlatBucket(Bucket):
    """Gradients stored one after another in one tensor, `buffer`; `views[i]` is the part of `parameters[i]`.

    multiple: zeros at the end round the buffer's length up to a multiple, so that as many ranks can share it.
    """

    def __init__(self, parameters: list[nn.Parameter], multiple: int = 1) -> None:
        super().__init__(parameters)
        self.sizes = [p.numel() for p in parameters]
        self.buffer = parameters[0].detach().new_zeros(-(-sum(self.sizes) // multiple) * multiple)
        self.views = self.views_of(self.buffer)

    def views_of(self, flat: Tensor) -> list[Tensor]:
        """Return the parts of `flat`, which is as long as the buffer, in the shapes of the parameters."""
        parts = flat[: sum(self.sizes)].split(self.sizes)
        return [shaped_like(p, part) for p, part in zip(self.parameters, parts, strict=True)]

    def gather(self) -> list[Tensor]:
        """Move the gradients into the buffer, with one kernel for all of them.

        Gradients that are already there, as after `zero_grad(set_to_none=False)`, are not copied. A parameter without a
        gradient gets 0. The copy is cheaper than the alternative: with the view as .grad from the start, someone would
        write zeros, and autograd would read and write them again to add the new gradient.
        """
        new, places = [], []
        for p, view in zip(self.parameters, self.views, strict=True):
            if p.grad is None:
                view.zero_()
            elif p.grad.data_ptr() != view.data_ptr():
                new.append(p.grad)
                places.append(view)
            p.grad = view
        if new:
            torch._foreach_copy_(places, new)
        return [self.buffer]


def memory_order(x: Tensor) -> list[int]:
    """Return the dimensions from the largest stride to the smallest, the permutation that would make x contiguous."""
    return sorted(range(x.ndim), key=x.stride, reverse=True)


def shaped_like(p: Tensor, flat: Tensor) -> Tensor:
    """Return a view of `flat` with p's shape, and with p's strides if p has no gaps, because autograd stores a
    gradient in that layout."""
    order = memory_order(p)
    if not p.permute(order).is_contiguous():
        return flat.view(p.shape)
    return flat.view([p.shape[dim] for dim in order]).permute([order.index(dim) for dim in range(p.ndim)])


def trained_parameters(parameters: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    """Return the parameters that need a gradient, once each. A tied weight appears at its first position, because
    its gradient is complete last."""
    return list(dict.fromkeys(p for p in parameters if p.requires_grad))


def fill_buckets(
    parameters: Iterable[nn.Parameter], bucket_bytes: float, first_bytes: float | None = None
) -> list[list[nn.Parameter]]:
    """Split the parameters, in order, into groups of at most `bucket_bytes` each (or one larger parameter), and
    `first_bytes` in the first. A bucket has one dtype and device; buckets of several dtypes fill side by side and
    are ordered by when they are complete."""
    buckets: list[list[nn.Parameter]] = []
    last: dict[int, int] = {}  # bucket's number → position of its last parameter
    filling: dict[tuple[torch.dtype, torch.device], tuple[int, float]] = {}  # the bucket's number, and the room left
    for position, p in enumerate(parameters):
        kind = (p.dtype, p.device)
        number, room = filling.get(kind, (-1, 0.0))
        if number < 0 or p.nbytes > room:
            number, room = len(buckets), bucket_bytes if buckets or first_bytes is None else first_bytes
            buckets.append([])
        buckets[number].append(p)
        last[number] = position
        filling[kind] = (number, room - p.nbytes)
    return [buckets[number] for number in sorted(last, key=last.__getitem__)]
