"""Count the FLOPs per token, forward and backward."""

from __future__ import annotations

from typing import NamedTuple

from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.counts.states import parameters


class Flops(NamedTuple):
    """The FLOPs per token of a training step."""

    forward: float
    backward: float  # each product a·b of the forward pass has two: ∂a = ∂c·bᵀ and ∂b = aᵀ·∂c
    recomputation: float  # the blocks' forward pass again, where each is checkpointed

    @property
    def step(self) -> float:
        """Forward and backward without recomputation: the numerator of MFU, as the PaLM paper defines it."""
        return self.forward + self.backward


def forward_flops(config: TransformerConfig, length: int, causal: bool = False) -> dict[str, float]:
    """Return the FLOPs per token of the forward pass, by part, for sequences of `length` tokens.

    causal=False: `scores` covers all L × L scores, as plain attention computes them and FlopCounterMode counts them.
    causal=True: the (L + 1) / 2 keys that a query sees on average, which is the necessary part. Every matrix counts
    twice its parameters except the embedding, which only looks rows up; a tied output still multiplies.
    """
    part = parameters(config)
    keys = (length + 1) / 2 if causal else length
    return {
        "attention": 2 * part["attention"],
        "scores": config.layers * 2 * 2 * config.width * keys,  # q·kᵀ and p·v, H · D = W wide
        "mlp": 2 * part["mlp"],
        "output": 2 * config.vocabulary * config.width,
    }


def flops_per_token(config: TransformerConfig, length: int, causal: bool = False) -> Flops:
    """Return the FLOPs of forward, backward and recomputation; `length` and `causal` as in `forward_flops`.

    The count assumes that the backward pass finds attention's probabilities in memory. FlashAttention computes them
    again, with one more product; like recomputation, `step` does not count it.
    """
    by_part = forward_flops(config, length, causal)
    forward = sum(by_part.values())
    return Flops(forward, 2 * forward, forward - by_part["output"])
