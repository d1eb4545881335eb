"""FLOPs of a token, forward and backward."""

from __future__ import annotations

from typing import NamedTuple

from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.counts.states import parameters


class Flops(NamedTuple):
    """FLOPs a token of a training step."""

    forward: float
    backward: float  # each product a·b of the forward pass has two: ∂a = ∂c·bᵀ and ∂b = aᵀ·∂c
    recomputation: float  # the blocks' forward pass again, where each is checkpointed

    @property
    def step(self) -> float:
        """Forward and backward, without recomputation: what MFU divides by (the PaLM paper's definition)."""
        return self.forward + self.backward


def forward_flops(config: TransformerConfig, length: int, causal: bool = False) -> dict[str, float]:
    """FLOPs a token of the forward pass, by part, at sequences of `length` tokens.

    causal=False: `scores` are all L × L of them, which is what plain attention computes and FlopCounterMode counts.
    causal=True: the (L + 1) / 2 keys that a query sees on average, which is what has to be computed. Twice a
    parameter for every matrix but the embedding, in which a row is looked up; a tied output multiplies all the same.
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
    """Forward, backward and recomputation; `length` and `causal` as in `forward_flops`.

    The backward pass finds attention's probabilities in memory. FlashAttention computes them again, a product more;
    like recomputation it is not counted in `step`.
    """
    by_part = forward_flops(config, length, causal)
    forward = sum(by_part.values())
    return Flops(forward, 2 * forward, forward - by_part["output"])
