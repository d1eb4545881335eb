"""A model as plans see it: Ψ, its number of parameters, and a shape for what depends on one.

States and traffic follow from Ψ alone. Activations, FLOPs and tensor parallelism need layers and widths: those of a
TransformerConfig, or, where only Ψ is known, of a LLaMA-like shape that comes near it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from labs_helpers.tensor_parallel.traffic import parameters_per_rank
from labs_helpers.transformer import TransformerConfig
from labs_helpers.transformer.counts import flops_per_token, parameters

HEAD_DIM, VOCABULARY, WIDTH_PER_LAYER = 128, 32_000, 128  # LLaMA's; 7B has 32 layers and a width of 4096
SMALLEST = 20e6  # parameters; below, the vocabulary alone is the model


@dataclass(frozen=True)
class Model:
    """Ψ parameters in the proportions of `shape`. assumed: whether the shape is a guess from Ψ."""

    parameters: float
    shape: TransformerConfig
    assumed: bool = False

    @classmethod
    def of(cls, size: float | TransformerConfig) -> Model:
        """Of a number of parameters (a shape is assumed) or of a TransformerConfig.

        ValueError for fewer than 20 million parameters, which say nothing of a shape.
        """
        if isinstance(size, TransformerConfig):
            return cls(sum(parameters(size).values()), size)
        if not SMALLEST <= size < math.inf:
            raise ValueError(f"parameters is {size:g}; a shape can be assumed from 20 million on, else give a config")
        return cls(size, llama_like(size), assumed=True)

    @property
    def scale(self) -> float:
        """Ψ / the shape's own parameters: 1 where the shape is given."""
        return self.parameters / sum(parameters(self.shape).values())

    def per_rank(self, tp: int = 1) -> float:
        """Parameters of a rank among `tp` that share the model: matrices are split, norms are whole on each."""
        return self.scale * parameters_per_rank(self.shape, tp)

    def per_block(self, tp: int = 1) -> float:
        """Of them, those of one block: attention, MLP and two norms."""
        one, two = (parameters_per_rank(replace(self.shape, layers=layers), tp) for layers in (1, 2))
        return self.scale * (two - one)

    def flops_per_token(self, length: int, causal: bool, recomputed: bool = False) -> float:
        """FLOPs per token of a training step, at sequences of `length`; recomputed: with every block's forward pass
        a second time (activation checkpointing)."""
        flops = flops_per_token(self.shape, length, causal)
        return self.scale * (flops.step + (flops.recomputation if recomputed else 0))

    def __str__(self) -> str:
        how = "assumed shape: " if self.assumed else ""
        return (
            f"{self.parameters / 1e9:.4g} billion parameters ({how}{self.shape.layers} layers, width "
            f"{self.shape.width}, {self.shape.heads} heads, hidden {self.shape.hidden})"
        )


def llama_like(count: float) -> TransformerConfig:
    """A shape of about `count` parameters with LLaMA's proportions: heads of 128, a hidden width of 8/3 of the width,
    and about 128 of width per layer. Heads are a power of two or a multiple of 8, so that tensor parallelism can split
    them."""
    found = [_with_heads(heads, count) for heads in (1, 2, 4, *range(8, 257, 8))]
    return min(found, key=lambda shape: _distance(shape, count))


def _with_heads(heads: int, count: float) -> TransformerConfig:
    width = HEAD_DIM * heads
    hidden = -(-8 * width // (3 * 256)) * 256
    one = TransformerConfig(VOCABULARY, layers=1, width=width, heads=heads, hidden=hidden, tied=False)
    outside = 2 * VOCABULARY * width
    layers = round((count - outside) / (sum(parameters(one).values()) - outside))
    return replace(one, layers=max(1, layers))


def _distance(shape: TransformerConfig, count: float) -> float:
    """How far a shape is from the count, which weighs most, and from LLaMA's width per layer."""
    missed = abs(math.log(sum(parameters(shape).values()) / count))
    return 20 * max(0.0, missed - 0.03) + abs(math.log(shape.width / shape.layers / WIDTH_PER_LAYER))
