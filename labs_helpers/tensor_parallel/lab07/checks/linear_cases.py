"""Test cases of exercises 7 and 8: layers split over ranks, with each rank's operands and right results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

OPERANDS = ("x", "weight", "bias", "grad_out")
GRADIENTS = ("grad_x", "grad_weight", "grad_bias")
LIKE = {
    "out": "grad_out",
    "grad_x": "x",
    "grad_weight": "weight",
    "grad_bias": "bias",
}  # each result has the shape of this operand
CALLS = 2  # calls of each layer's backward, each with a different grad_out
OWN: dict[
    str, Callable[[Tensor, Tensor, Tensor], Tensor]
] = {  # what a rank computes from its own x, weight and grad_out
    "out": lambda x, weight, grad_out: x @ weight,
    "grad_x": lambda x, weight, grad_out: grad_out @ weight.T,
    "grad_weight": lambda x, weight, grad_out: x.flatten(0, 1).T @ grad_out.flatten(0, 1),
    "grad_bias": lambda x, weight, grad_out: grad_out.sum((0, 1)),
}
Parts = dict[str, list[Tensor]]  # each rank's part of an operand or a result


@dataclass(frozen=True)
class Case:
    """A test case with `groups` groups of `ranks` ranks, each group with its own data.

    features, width: the shape of the whole layer's weight. layers: the number of layers alive at the same time.
    whole_numbers: draw small integers. strided: make no operand contiguous.
    """

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

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions that tensors may have in this case, by name."""
        sizes = {"batch": self.batch, "length": self.length, "batch · length": self.batch * self.length}
        for name, size in (("in", self.features), ("out", self.width)):
            parts = {f"{name} / p": size // self.ranks, f"p · {name}": size * self.ranks}
            sizes |= {name: size} | (parts if self.ranks > 1 else {})
        return sizes


@dataclass(frozen=True)
class Cut:
    """The dimension along which each operand is split; None if it is whole on every rank."""

    x: int | None = None
    weight: int | None = None
    bias: int | None = None
    grad_out: int | None = None

    def parts(self, name: str, whole: Tensor, ranks: int) -> list[Tensor]:
        """Return each rank's part of an operand or of a result."""
        dim = getattr(self, LIKE.get(name, name))
        return [whole] * ranks if dim is None else list(whole.chunk(ranks, dim))


@dataclass(frozen=True)
class Layer:
    """One layer of one group in float64: for each call of backward, all ranks' operands and right results."""

    operands: list[Parts]
    results: list[Parts]


@cache
def layers_of(case: Case, cut: Cut) -> list[list[Layer]]:
    """Return the layers of each group; all of them differ."""
    return [[_layer(case, cut, 10 * group + i) for i in range(case.layers)] for group in range(case.groups)]


def operands_of(case: Case, layer: Layer, rank: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return a rank's own copies of (x, weight, bias) and of all grad_outs, in the case's dtype."""
    made = [layer.operands[0][name] for name in OPERANDS[:3]], [one["grad_out"] for one in layer.operands]
    return tuple([_laid_out(parts[rank].to(case.dtype), case.strided) for parts in some] for some in made)


def _laid_out(tensor: Tensor, strided: bool) -> Tensor:
    """Copy a tensor. strided: transpose it in memory, or make a vector every other element of a longer one."""
    if not strided:
        return tensor.clone(memory_format=torch.contiguous_format)
    if tensor.ndim == 1:
        return torch.stack([tensor, tensor], 1).flatten()[::2]
    return tensor.transpose(0, 1).clone(memory_format=torch.contiguous_format).transpose(0, 1)


def _layer(case: Case, cut: Cut, seed: int) -> Layer:
    draw = _numbers(case.whole_numbers, seed, case.dtype)
    x = next(draw)(case.batch, case.length, case.features)
    weight = next(draw)(case.features, case.width)
    bias = next(draw)(case.width) + (40 if case.whole_numbers else 0)  # larger than any sum of products
    operands, results = [], []
    for _ in range(CALLS):
        grad_out = next(draw)(case.batch, case.length, case.width)
        whole = dict(zip(OPERANDS, (x, weight, bias, grad_out), strict=True))
        right = {name: own(x, weight, grad_out) for name, own in OWN.items()}
        right["out"] = right["out"] + bias
        operands.append({name: cut.parts(name, one, case.ranks) for name, one in whole.items()})
        results.append({name: cut.parts(name, one, case.ranks) for name, one in right.items()})
    return Layer(operands, results)


def _numbers(whole_numbers: bool, seed: int, dtype: torch.dtype) -> Iterator:
    """Yield functions that draw a tensor of a given shape, each with new numbers that are exact in dtype."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        if whole_numbers:
            yield lambda *shape: torch.randint(-6, 7, shape, generator=generator).double()
        else:
            yield lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).double()
