"""Parameters, FLOPs and bytes of a Transformer by formula.

B batch, L length, V vocabulary, W width, F hidden, H heads of D, Hkv key and value heads; a FLOP is one addition or one
multiplication, and only matrix products are counted.
"""

from __future__ import annotations

from typing import NamedTuple

from labs_helpers.transformer.config import TransformerConfig


def parameters(config: TransformerConfig) -> dict[str, int]:
    """Number of parameters by part; their sum is the model's. A tied output is the embedding and counts 0."""
    W, kv_width = config.width, config.key_value_heads * config.head_dim
    return {
        "embedding": config.vocabulary * W,
        "attention": config.layers * (2 * W * W + 2 * W * kv_width),  # wq and wo, wk and wv
        "mlp": config.layers * 3 * W * config.hidden,  # gate, up, down
        "norms": (2 * config.layers + 1) * W,
        "output": 0 if config.tied else config.vocabulary * W,
    }


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


def saved_activations(config: TransformerConfig, batch: int, length: int, itemsize: int = 4) -> dict[str, int]:
    """Bytes that forward pass and `next_token_loss` keep for the backward pass, by tensor, all layers together, with
    plain attention. Their sum is what stands in memory beside parameters before the backward pass begins.

    itemsize: bytes of an element of parameters and activations: 4 float32, 2 bfloat16 or float16 (not autocast, which
    keeps copies of the weights too). What is float32 inside the model (norm, softmax, loss) has 4 bytes in any case.
    """
    tokens, heads = batch * length, config.heads
    stream = tokens * config.width  # elements of a tensor as wide as the residual stream
    scores = batch * heads * length * length
    norms = 2 * config.layers + 1
    return {
        "tokens and targets": 2 * 8 * tokens,
        "rotary cos and sin": 2 * 4 * length * config.head_dim // 2,
        # Wide x and 1/rms in float32, and normed x; in float32 wide x is x itself.
        "norm": norms * (4 * stream + 4 * tokens + itemsize * stream),
        "norm's output": norms * itemsize * stream,
        # k and v repeated for every query head.
        "q, k, v": config.layers * 3 * itemsize * stream,
        "mask": config.layers * length * length,
        # The softmax's own in float32, and for the product with v rounded.
        "probabilities": config.layers * scores * (4 if itemsize == 4 else 4 + itemsize),
        "attention's output": config.layers * itemsize * stream,
        # gate(x), its silu, up(x), and silu · up.
        "mlp": config.layers * 4 * itemsize * tokens * config.hidden,
        "log-softmax of the logits": 4 * tokens * config.vocabulary,
    }


# Bytes a parameter: (parameters, gradients, optimizer states). AdamW keeps two moments.
LAYOUTS = {
    "bf16 with float32 master": (2, 2, 4 + 4 + 4),  # master weights count as the optimizer's
    "autocast over float32": (4, 4, 4 + 4),
    "bf16": (2, 2, 2 + 2),
}


def state_bytes(config: TransformerConfig, layout: str) -> dict[str, int]:
    """Bytes of 'parameters', 'gradients' and 'optimizer' (AdamW) in one of LAYOUTS: 16, 16 and 8 a parameter.

    ValueError for another layout."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it may be {', '.join(map(repr, LAYOUTS))}")
    count = sum(parameters(config).values())
    sizes = zip(("parameters", "gradients", "optimizer"), LAYOUTS[layout], strict=True)
    return {name: count * size for name, size in sizes}
