"""Linear layers that are cut into ranks' parts: what goes in on each rank, and what should come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

OPERANDS = ("x", "weight", "bias", "grad_out")
LIKE = {"out": "grad_out", "grad_x": "x", "grad_weight": "weight", "grad_bias": "bias"}  # a result has its shape
GRADIENTS = tuple(LIKE)[1:]
CALLS = 2  # of each layer's backward, with another grad_out each
UNIT = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}
ROUNDING = "the rounding errors of sums this long"

Parts = dict[str, list[Tensor]]  # of an operand or a result: each rank's


@dataclass(frozen=True)
class Case:
    """`ranks` to a group, `groups` of them, each with its own data. features, width: those of the whole layer's weight.
    layers: alive at the same time. whole_numbers: small ones. strided: no operand is contiguous."""

    name: str
    ranks: int
    batch: int
    length: int
    features: int
    width: int
    groups: int = 1
    layers: int = 1
    dtype: torch.dtype = torch.float32
    whole_numbers: bool = True
    strided: bool = False


@dataclass(frozen=True)
class Cut:
    """Along which dimension each operand is cut; None: it is whole on every rank."""

    x: int | None = None
    weight: int | None = None
    bias: int | None = None
    grad_out: int | None = None

    def parts(self, name: str, whole: Tensor, ranks: int) -> list[Tensor]:
        """Each rank's part of an operand or of a result."""
        dim = getattr(self, LIKE.get(name, name))
        return [whole] * ranks if dim is None else list(whole.chunk(ranks, dim))


@dataclass(frozen=True)
class Layer:
    """One layer of one group in float64. operands: the parts of x, weight and bias; out, out_bounds: those of out;
    grad_outs, gradients, gradient_bounds: those of each call of backward."""

    operands: Parts
    grad_outs: list[list[Tensor]]
    out: list[Tensor]
    gradients: list[Parts]
    out_bounds: list[Tensor]
    gradient_bounds: list[Parts]

    def local(self, call: int) -> Parts:
        """What each rank has for itself, its x, weight, bias, and grad_out of a call."""
        return self.operands | {"grad_out": self.grad_outs[call]}


@cache
def layers_of(case: Case, cut: Cut) -> list[list[Layer]]:
    """The layers of each group; all differ."""
    return [[_layer(case, cut, 10 * group + i) for i in range(case.layers)] for group in range(case.groups)]


def operands_of(case: Case, layer: Layer, rank: int) -> tuple[list[Tensor], list[Tensor]]:
    """(x, weight, bias) and all grad_outs of a rank, as its own tensors in the case's dtype."""
    made = [parts[rank] for parts in layer.operands.values()], [parts[rank] for parts in layer.grad_outs]
    return tuple([_laid_out(tensor.to(case.dtype), case.strided) for tensor in tensors] for tensors in made)


def _laid_out(tensor: Tensor, strided: bool) -> Tensor:
    """A copy; strided: turned round in memory, or every other element of a longer vector."""
    if not strided:
        return tensor.clone(memory_format=torch.contiguous_format)
    if tensor.ndim == 1:
        return torch.stack([tensor, tensor], 1).flatten()[::2]
    return tensor.transpose(0, 1).clone(memory_format=torch.contiguous_format).transpose(0, 1)


def _layer(case: Case, cut: Cut, seed: int) -> Layer:
    numbers = _numbers(case.whole_numbers, seed, case.dtype)
    x = next(numbers)(case.batch, case.length, case.features)
    weight = next(numbers)(case.features, case.width)
    bias = next(numbers)(case.width) + (40 if case.whole_numbers else 0)  # no sum of products is like it
    grad_outs = [next(numbers)(case.batch, case.length, case.width) for _ in range(CALLS)]
    out, gradients, out_bound, bounds = _results(x, weight, bias, grad_outs, UNIT[case.dtype])

    def parts(tensors: Mapping[str, Tensor]) -> Parts:
        return {name: cut.parts(name, tensor, case.ranks) for name, tensor in tensors.items()}

    return Layer(
        parts({"x": x, "weight": weight, "bias": bias}),
        [cut.parts("grad_out", grad_out, case.ranks) for grad_out in grad_outs],
        cut.parts("out", out, case.ranks),
        [parts(one) for one in gradients],
        cut.parts("out", out_bound, case.ranks),
        [parts(one) for one in bounds],
    )


def _numbers(whole_numbers: bool, seed: int, dtype: torch.dtype) -> Iterator:
    """Functions of a shape, each drawing other numbers; what they draw is exact in dtype."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        if whole_numbers:
            yield lambda *shape: torch.randint(-6, 7, shape, generator=generator).double()
        else:
            yield lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).double()


def _results(x, weight, bias, grad_outs, unit: float):
    """(out, gradients of each call, bound of out, bounds of the gradients) of the whole layer, by autograd.

    A sum of K products is off by at most K roundings of Σ|a||b|; 4 more leave room for another order of the steps."""
    leaves = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
    out = leaves[0] @ leaves[1] + leaves[2]
    gradients = [torch.autograd.grad(out, leaves, g, retain_graph=True) for g in grad_outs]
    tokens, (features, width) = x[..., 0].numel(), weight.shape
    terms = {"grad_x": width, "grad_weight": tokens, "grad_bias": tokens}
    bounds = []
    for g in grad_outs:
        sizes = own_gradients(x.abs(), weight.abs(), g.abs())
        bounds.append({name: unit * (terms[name] + 4) * size for name, size in sizes.items()})
    out_bound = unit * (features + 5) * (x.abs() @ weight.abs() + bias.abs())
    named = [dict(zip(GRADIENTS, one, strict=True)) for one in gradients]
    return out.detach(), named, out_bound, bounds


def own_gradients(x: Tensor, weight: Tensor, grad_out: Tensor) -> dict[str, Tensor]:
    """The three gradients of one product, for instance of what a rank has for itself."""
    return {
        "grad_x": grad_out @ weight.T,
        "grad_weight": x.flatten(0, 1).T @ grad_out.flatten(0, 1),
        "grad_bias": grad_out.sum((0, 1)),
    }
