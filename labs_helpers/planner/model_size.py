"""The size of a model for a plan: its number of parameters Ψ, and a shape.

States and traffic follow from Ψ alone. Activations, FLOPs, and tensor parallelism need layers and widths. They come
from a TransformerConfig or, if only Ψ is known, from a LLaMA-like shape of about that size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from labs_helpers.tensor_parallel.traffic import parameters_per_rank
from labs_helpers.transformer import TransformerConfig
from labs_helpers.transformer.counts import flops_per_token, parameters

HEAD_DIM, VOCABULARY, WIDTH_PER_LAYER = 128, 32_000, 128  # LLaMA's; 7B has 32 layers and a width of 4096
SMALLEST = 20e6  # parameters; a smaller model would consist mostly of the vocabulary


@dataclass(frozen=True)
class Model:
    """A model of Ψ parameters in the proportions of `shape`. assumed: whether the shape is guessed from Ψ."""

    parameters: float
    shape: TransformerConfig
    assumed: bool = False

    @classmethod
    def of(cls, size: float | TransformerConfig, multiple: int = 1) -> Model:
        """Make a model from a number of parameters (the shape is assumed) or a TransformerConfig.

        multiple: the assumed number of layers is a multiple of it, so that pipeline ranks can share them. Raise
        ValueError for fewer than 20 million parameters, from which no shape can be assumed.
        """
        if isinstance(size, TransformerConfig):
            return cls(sum(parameters(size).values()), size)
        if not SMALLEST <= size < math.inf:
            raise ValueError(f"parameters is {size:g}; below 20 million no shape can be assumed, so pass a config")
        return cls(size, llama_like(size, multiple), assumed=True)

    @property
    def scale(self) -> float:
        """Ψ divided by the shape's own parameters: 1 if the shape was given."""
        return self.parameters / sum(parameters(self.shape).values())

    def per_rank(self, tp: int = 1) -> float:
        """Return the parameters per rank if `tp` ranks share the model: matrices are split, norms are replicated."""
        return self.scale * parameters_per_rank(self.shape, tp)

    def per_block(self, tp: int = 1) -> float:
        """Return the parameters per rank of one block: attention, MLP, and two norms."""
        one, two = (parameters_per_rank(replace(self.shape, layers=layers), tp) for layers in (1, 2))
        return self.scale * (two - one)

    def flops_per_token(self, length: int, causal: bool, recomputed: bool = False) -> float:
        """Return the FLOPs per token of a training step with sequences of `length`.

        recomputed: every block's forward pass runs a second time (activation checkpointing).
        """
        flops = flops_per_token(self.shape, length, causal)
        return self.scale * (flops.step + (flops.recomputation if recomputed else 0))

    def __str__(self) -> str:
        how = "assumed shape: " if self.assumed else ""
        return (
            f"{self.parameters / 1e9:.4g} billion parameters ({how}{self.shape.layers} layers, width "
            f"{self.shape.width}, {self.shape.heads} heads, hidden {self.shape.hidden})"
        )


def llama_like(count: float, multiple: int = 1) -> TransformerConfig:
    """Return a shape of about `count` parameters with LLaMA's proportions.

    Heads have 128 elements, the hidden width is 8/3 of the width, and there is about 128 of width per layer. The number
    of heads is a power of two or a multiple of 8, so that tensor parallelism can split them. The number of layers is a
    multiple of `multiple`.
    """
    found = [_with_heads(heads, count, multiple) for heads in (1, 2, 4, *range(8, 257, 8))]
    return min(found, key=lambda shape: _distance(shape, count))


def _with_heads(heads: int, count: float, multiple: int) -> TransformerConfig:
    width = HEAD_DIM * heads
    hidden = -(-8 * width // (3 * 256)) * 256
    one = TransformerConfig(VOCABULARY, layers=1, width=width, heads=heads, hidden=hidden, tied=False)
    outside = 2 * VOCABULARY * width
    layers = (count - outside) / (sum(parameters(one).values()) - outside)
    return replace(one, layers=max(1, round(layers / multiple)) * multiple)


def _distance(shape: TransformerConfig, count: float) -> float:
    """Return the distance of a shape from the count, which weighs most, and from LLaMA's width per layer."""
    missed = abs(math.log(sum(parameters(shape).values()) / count))
    return 20 * max(0.0, missed - 0.03) + abs(math.log(shape.width / shape.layers / WIDTH_PER_LAYER))
