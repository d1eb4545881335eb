"""Models with parameters of every kind, whose gradients show which rank and which step produced them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from labs_helpers.course.verdict import Wrong


class Part(NamedTuple):
    """A parameter. kind: '', 'transposed', 'tied', 'frozen', 'unused' or 'idle'.

    tied: `output.weight` is the same parameter. unused: odd ranks do not use it in a step. idle: no rank uses it.
    """

    name: str
    shape: tuple[int, ...]
    kind: str = ""
    dtype: torch.dtype = torch.float32


PLAIN = (
    Part("first.weight", (3, 4)),
    Part("first.bias", (4,)),
    Part("last.weight", (4, 5)),
    Part("last.bias", (4,)),  # the same shape as first.bias
)
FIRST, LAST = PLAIN[:2], PLAIN[2:]
TRANSPOSED = (*FIRST, Part("middle.weight", (4, 3), "transposed"), *LAST)
TIED = (Part("embedding.weight", (6, 2), "tied"), *PLAIN)
FROZEN = (*FIRST, Part("frozen.weight", (3, 3), "frozen"), *LAST)
UNUSED = (*FIRST, Part("adapter.weight", (5, 2), "unused"), Part("adapter.bias", (2,), "unused"), *LAST)
IDLE = (*FIRST, Part("idle.weight", (2, 3), "idle"), *LAST)
MIXED = (
    *FIRST,
    Part("norm.weight", (7,), dtype=torch.bfloat16),
    Part("norm.bias", (6,), dtype=torch.float64),
    *LAST,
    Part("end.scale", (), dtype=torch.bfloat16),
)

LARGEST = {torch.bfloat16: 2**4, torch.float32: 2**11, torch.float64: 2**36}  # of a gradient, in sixths
Gradients = Mapping[str, Tensor | None]


def replica(parts: Sequence[Part], seed: int = 0) -> nn.Module:
    """Build a model of these parts; the same seed gives the same values."""
    generator = torch.Generator().manual_seed(seed)
    model = nn.Module()
    for part in parts:
        home, _, name = part.name.rpartition(".")
        if home and not hasattr(model, home):
            model.add_module(home, nn.Module())
        values = torch.randn(part.shape, generator=generator).to(part.dtype)
        if part.kind == "transposed":
            values = values.t().contiguous().t()
        parameter = nn.Parameter(values, requires_grad=part.kind != "frozen")
        (getattr(model, home) if home else model).register_parameter(name, parameter)
    if any(part.kind == "tied" for part in parts):
        model.add_module("output", nn.Module())
        model.output.weight = model.embedding.weight
    return model


def draw(parts: Sequence[Part], rank: int, step: int = 0, used: bool = True) -> dict[str, Tensor | None]:
    """Draw gradients that are multiples of 6; None for the parameters that this rank does not use.

    Means over 2, 3 and 4 ranks are exact in a part's dtype, but not in a dtype with fewer bits. used: if True, odd
    ranks do not use 'unused' parameters; if False, even ranks do not.
    """
    generator = torch.Generator().manual_seed(1000 * step + rank)
    drawn: dict[str, Tensor | None] = {}
    for part in parts:
        most = LARGEST[part.dtype]
        values = 6.0 * torch.randint(-most, most + 1, part.shape, generator=generator).double()
        values += 6.0 * (values == 0)  # a gradient of 0 would hide mistakes
        absent = part.kind == "idle" or (part.kind == "unused" and (rank % 2 == 1) == used)
        if part.kind != "frozen":
            drawn[part.name] = None if absent else values
    return drawn


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def fill(model: nn.Module, gradients: Gradients) -> None:
    """Set every parameter's .grad, like backward, in the parameter's dtype and memory order."""
    for name, p in trained(model).items():
        values = gradients[name]
        p.grad = None if values is None else torch.empty_like(p).detach().copy_(values)


def backward(model: nn.Module, gradients: Gradients, late: Sequence[str] = ()) -> None:
    """Run a backward pass that produces these gradients, from the model's last parameter to the first.

    A tied parameter is used at both ends of the model, so its gradient is complete last. late: names whose gradients
    arrive last, in this order.
    """
    parameters = trained(model)
    order = [name for name in parameters if name not in late]
    shared = ["embedding.weight"] * hasattr(model, "output")
    loss = torch.zeros((), dtype=torch.float64)
    for name in [*reversed(late), *order, *shared]:
        values = gradients[name]
        if values is not None:
            loss = loss + (parameters[name].double() * values).sum() * (0.5 if name in shared else 1.0)
    loss.backward()


def taken(model: nn.Module) -> dict[str, Tensor | None]:
    """Return copies of the parameters' .grad, by name."""
    return {name: None if p.grad is None else p.grad.detach().clone() for name, p in model.named_parameters()}


def copies(model: nn.Module) -> dict[str, Tensor]:
    """Return copies of the model's parameters, by name."""
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def expect_kept(model: nn.Module, before: Mapping[str, Tensor]) -> None:
    """Raise Wrong on a rank if a parameter differs from its value `before`."""
    for name, p in model.named_parameters():
        if not torch.equal(p, before[name]):
            cause = "average the gradients, in .grad; do not change the parameters"
            raise Wrong("", f"has changed {name}", cause=cause)


def places(model: nn.Module) -> dict[str, int]:
    """Return the address of each .grad's memory, by name."""
    return {name: p.grad.untyped_storage().data_ptr() for name, p in model.named_parameters() if p.grad is not None}
