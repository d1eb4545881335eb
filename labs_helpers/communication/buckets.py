"""Parameters whose gradients travel together: which ones, and where their gradients lie meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

MEGABYTE = 2**20
BUCKET_MB = 25.0  # the most that a bucket holds unless a caller says otherwise: DistributedDataParallel's default


class Bucket:
    """Gradients that travel together from where backward has put them: nothing is copied, no memory is kept."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        self.arrived: set[int] = set()  # places of the parameters whose gradients this step has

    @property
    def full(self) -> bool:
        return len(self.arrived) == len(self.parameters)

    def gather(self) -> list[Tensor]:
        """What to send: contiguous tensors on the gradients' memory. A parameter without a gradient gets 0."""
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
    """Gradients one behind the other in one tensor, `buffer`: `views[i]` is the place of `parameters[i]`'s."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        super().__init__(parameters)
        sizes = [p.numel() for p in parameters]
        self.buffer = parameters[0].detach().new_zeros(sum(sizes))
        self.views = [shaped_like(p, part) for p, part in zip(parameters, self.buffer.split(sizes), strict=True)]

    def gather(self) -> list[Tensor]:
        """Moves the gradients into the buffer, by one kernel for all. Those that lie there already, as after
        `zero_grad(set_to_none=False)`, are not copied; a parameter without a gradient gets 0.

        The copy costs less than none: with the view as .grad from the start, autograd would read and write it to add
        the new gradient to zeros, which somebody had to write.
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
    """The dimensions from the largest stride to the smallest: how x would be permuted to be contiguous."""
    return sorted(range(x.ndim), key=x.stride, reverse=True)


def shaped_like(p: Tensor, flat: Tensor) -> Tensor:
    """A view of `flat` with p's shape, and p's strides where p has no gaps: autograd leaves a gradient in them."""
    order = memory_order(p)
    if not p.permute(order).is_contiguous():
        return flat.view(p.shape)
    return flat.view([p.shape[dim] for dim in order]).permute([order.index(dim) for dim in range(p.ndim)])


def trained_parameters(parameters: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    """Those that need a gradient, each once: a tied weight at its first place, since its gradient is the last."""
    return list(dict.fromkeys(p for p in parameters if p.requires_grad))


def fill_buckets(
    parameters: Iterable[nn.Parameter], bucket_bytes: float, first_bytes: float | None = None
) -> list[list[nn.Parameter]]:
    """The parameters in their order, as many together as `bucket_bytes` hold (one, if it is larger), `first_bytes` in
    the first. A bucket has one dtype and device; those of several dtypes fill side by side and stand in the order in
    which they are complete.
    """
    buckets: list[list[nn.Parameter]] = []
    last: dict[int, int] = {}  # by the bucket's number, the position of its last parameter
    filling: dict[tuple[torch.dtype, torch.device], tuple[int, float]] = {}  # its number, and the room left
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
