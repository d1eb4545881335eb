"""Linear layers that are cut into ranks' parts: what goes in on each rank, and what should come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

OPERANDS = ("x", "weight", "bias", "grad_out")
GRADIENTS = ("grad_x", "grad_weight", "grad_bias")
LIKE = {"out": "grad_out", "grad_x": "x", "grad_weight": "weight", "grad_bias": "bias"}  # a result has its shape
CALLS = 2  # of each layer's backward, with another grad_out each
OWN: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {  # what a rank computes of x, weight and grad_out
    "out": lambda x, weight, grad_out: x @ weight,
    "grad_x": lambda x, weight, grad_out: grad_out @ weight.T,
    "grad_weight": lambda x, weight, grad_out: x.flatten(0, 1).T @ grad_out.flatten(0, 1),
    "grad_bias": lambda x, weight, grad_out: grad_out.sum((0, 1)),
}
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

    @property
    def sizes(self) -> dict[str, int]:
        """The dimensions that tensors may have here, by name."""
        sizes = {"batch": self.batch, "length": self.length, "batch · length": self.batch * self.length}
        for name, size in (("in", self.features), ("out", self.width)):
            parts = {f"{name} / p": size // self.ranks, f"p · {name}": size * self.ranks}
            sizes |= {name: size} | (parts if self.ranks > 1 else {})
        return sizes


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
    """One layer of one group in float64, for each call of backward: operands, of each rank; results: what is right."""

    operands: list[Parts]
    results: list[Parts]


@cache
def layers_of(case: Case, cut: Cut) -> list[list[Layer]]:
    """The layers of each group; all differ."""
    return [[_layer(case, cut, 10 * group + i) for i in range(case.layers)] for group in range(case.groups)]


def operands_of(case: Case, layer: Layer, rank: int) -> tuple[list[Tensor], list[Tensor]]:
    """(x, weight, bias) and all grad_outs of a rank, as its own tensors in the case's dtype."""
    made = [layer.operands[0][name] for name in OPERANDS[:3]], [one["grad_out"] for one in layer.operands]
    return tuple([_laid_out(parts[rank].to(case.dtype), case.strided) for parts in some] for some in made)


def _laid_out(tensor: Tensor, strided: bool) -> Tensor:
    """A copy; strided: turned round in memory, or every other element of a longer vector."""
    if not strided:
        return tensor.clone(memory_format=torch.contiguous_format)
    if tensor.ndim == 1:
        return torch.stack([tensor, tensor], 1).flatten()[::2]
    return tensor.transpose(0, 1).clone(memory_format=torch.contiguous_format).transpose(0, 1)


def _layer(case: Case, cut: Cut, seed: int) -> Layer:
    draw = _numbers(case.whole_numbers, seed, case.dtype)
    x = next(draw)(case.batch, case.length, case.features)
    weight = next(draw)(case.features, case.width)
    bias = next(draw)(case.width) + (40 if case.whole_numbers else 0)  # no sum of products is like it
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
    """Functions of a shape, each drawing other numbers; what they draw is exact in dtype."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        if whole_numbers:
            yield lambda *shape: torch.randint(-6, 7, shape, generator=generator).double()
        else:
            yield lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).double()
