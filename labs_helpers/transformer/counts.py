"""Parameters, FLOPs and bytes of a Transformer by formula.

B batch, L length, V vocabulary, W width, F hidden, H heads of D, Hkv key and value heads; a FLOP is one addition or one
multiplication, and only matrix products are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from labs_helpers.transformer.attentions import ATTENTIONS
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


def saved_activations(
    config: TransformerConfig, batch: int, length: int, itemsize: int = 4, attention: str = "plain"
) -> dict[str, int]:
    """Bytes that forward pass and `next_token_loss` keep for the backward pass, by tensor, all layers together. Their
    sum is what stands in memory beside parameters before the backward pass begins.

    itemsize: bytes of an element of parameters and activations: 4 float32, 2 bfloat16 or float16 (not autocast, which
    keeps copies of the weights too). What is float32 inside the model (norm, softmax, loss) has 4 bytes in any case.
    attention: 'plain', or one kernel that keeps nothing L × L: 'sdpa', 'flash'.
    """
    _expect("attention", attention, ATTENTIONS)
    tokens, heads = batch * length, config.heads
    stream = tokens * config.width  # elements of a tensor as wide as the residual stream
    scores = batch * heads * length * length
    norms = 2 * config.layers + 1
    if attention == "plain":
        outputs = 1
        inside = {
            # k and v repeated for every query head.
            "q, k, v": config.layers * 3 * itemsize * stream,
            "mask": config.layers * length * length,
            # The softmax's own in float32, and for the product with v rounded.
            "probabilities": config.layers * scores * (4 if itemsize == 4 else 4 + itemsize),
        }
    else:
        outputs = 2  # the kernel keeps its own beside the one with the heads side by side that wo multiplies
        inside = {
            "q, k, v": config.layers * itemsize * (stream + 2 * stream // heads * config.key_value_heads),
            "log-sum-exp": config.layers * 4 * tokens * heads,
        }
    return {
        "tokens and targets": 2 * 8 * tokens,
        "rotary cos and sin": 2 * 4 * length * config.head_dim // 2,
        # Wide x and 1/rms in float32, and normed x; in float32 wide x is x itself.
        "norm": norms * (4 * stream + 4 * tokens + itemsize * stream),
        "norm's output": norms * itemsize * stream,
        **inside,
        "attention's output": config.layers * outputs * itemsize * stream,
        # gate(x), its silu, up(x), and silu · up.
        "mlp": config.layers * 4 * itemsize * tokens * config.hidden,
        "log-softmax of the logits": 4 * tokens * config.vocabulary,
    }


def step_peaks(
    config: TransformerConfig,
    batch: int,
    length: int,
    itemsize: int = 4,
    attention: str = "plain",
    optimizer: str = "foreach",
) -> dict[str, int]:
    """Bytes of tensors alive at five points of a training step; the largest is the step's peak.

    They are the points at which measured steps had their peak, operator by operator:
    'loss': the backward pass is in the loss's softmax. Beside all that was kept stand the gradients of the log-softmax
        and of the logits, in float32. The peak of most steps.
    'mlp': in the last layer's silu · up, with three gradients F wide. The peak where F is well above V.
    'attention': in a layer's softmax, with the gradients of the probabilities and of the scores in float32. In the
        last layer, or in the first where gradients weigh more than activations. The peak where H · L is well above V.
    'gradients': the backward pass ends. A tied weight has two, of output and embedding, and beside them their sum.
    'update': AdamW's temporaries. 'foreach', the default on GPUs, makes one as large as all parameters together,
        'for-loop' two or three as large as the largest matrix, 'fused' none. The peak where tokens are few.

    The step: forward, backward, update, and gradients freed before the next forward (`zero_grad(set_to_none=True)`).
    Parameters, gradients and AdamW's two moments have `itemsize` bytes; itemsize and attention as for
    `saved_activations`. Not counted: an allocator's rounding, cuBLAS's workspace, what a kernel uses inside.
    ValueError for another attention or optimizer.
    """
    _expect("optimizer", optimizer, ("for-loop", "foreach", "fused"))
    saved = saved_activations(config, batch, length, itemsize, attention)
    logits, norms = saved["log-softmax of the logits"], saved["norm"] + saved["norm's output"]
    count, kept = sum(parameters(config).values()), sum(saved.values())
    head, matrix = config.vocabulary * config.width, config.width * config.hidden
    temporaries = {"for-loop": max(2 * head, 3 * matrix), "foreach": count, "fused": 0}[optimizer]
    stream, hidden = batch * length * config.width, batch * length * config.hidden
    behind = kept - logits - norms // (2 * config.layers + 1)  # what is kept when the last layer's turn comes
    inside = [_in_attention(config, layer, batch, length, itemsize, attention) for layer in (0, config.layers - 1)]
    return {
        "loss": itemsize * 3 * count + kept + 2 * logits,
        "mlp": itemsize * (3 * count + head + matrix + stream + 2 * hidden) + behind,  # silu · up itself is gone
        "attention": itemsize * 3 * count + max(inside),
        "gradients": itemsize * (4 * count + (2 * head if config.tied else 0)),
        "update": itemsize * (4 * count + temporaries),
    }


def step_peak(
    config: TransformerConfig,
    batch: int,
    length: int,
    itemsize: int = 4,
    attention: str = "plain",
    optimizer: str = "foreach",
) -> int:
    """The most bytes of tensors alive in a training step: the largest of `step_peaks`."""
    return max(step_peaks(config, batch, length, itemsize, attention, optimizer).values())


def _in_attention(config: TransformerConfig, layer: int, batch: int, length: int, itemsize: int, attention: str) -> int:
    """Bytes beside parameters and moments while the backward pass is in a layer's softmax; layer 0 is its last."""
    below = replace(config, layers=layer + 1)
    saved = saved_activations(below, batch, length, itemsize, attention)
    last = (saved["mlp"] + (saved["attention's output"] if attention == "plain" else 0)) // (layer + 1)
    two_norms = 2 * (saved["norm"] + saved["norm's output"]) // (2 * layer + 3)  # the MLP's, and the one above
    kept = sum(saved.values()) - saved["log-softmax of the logits"] - last - two_norms
    stream, scores = batch * length * config.width, batch * config.heads * length * length
    gradients = sum(parameters(config).values()) - sum(parameters(below).values())  # of the layers above, and:
    gradients += config.width * (config.vocabulary + config.width + 3 * config.hidden)
    if attention != "plain":
        return kept + itemsize * (gradients + 5 * stream)  # of the residual stream, o, q, k and v
    rounded = 0 if itemsize == 4 else itemsize * scores  # gone: the product with v is before the softmax
    return kept - rounded + 2 * 4 * scores + itemsize * (gradients + 2 * stream)


def score_bytes(config: TransformerConfig, batch: int, itemsize: int = 4) -> dict[str, int]:
    """Bytes per length² of `step_peaks` with plain attention, at the two points where there are any."""
    scores, rounded = batch * config.heads, 0 if itemsize == 4 else itemsize
    kept = config.layers * (scores * (4 + rounded) + 1)
    return {"loss": kept, "attention": kept + scores * (2 * 4 - rounded)}


def fit_length(peaks: Mapping[int, float]) -> tuple[float, float, float]:
    """(a, b, c) of peak ≈ a + b · L + c · L², by least squares through {length: bytes}; three lengths or more."""
    c, b, a = np.polyfit(list(peaks), list(peaks.values()), 2)
    return float(a), float(b), float(c)


# Bytes a parameter: (parameters, gradients, optimizer states). AdamW keeps two moments.
LAYOUTS = {
    "bf16 with float32 master": (2, 2, 4 + 4 + 4),  # master weights count as the optimizer's
    "autocast over float32": (4, 4, 4 + 4),
    "bf16": (2, 2, 2 + 2),
}


def state_bytes(config: TransformerConfig, layout: str) -> dict[str, int]:
    """Bytes of 'parameters', 'gradients' and 'optimizer' (AdamW) in one of LAYOUTS: 16, 16 and 8 a parameter.

    ValueError for another layout."""
    _expect("layout", layout, LAYOUTS)
    count = sum(parameters(config).values())
    sizes = zip(("parameters", "gradients", "optimizer"), LAYOUTS[layout], strict=True)
    return {name: count * size for name, size in sizes}


def _expect(name: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; it may be {', '.join(map(repr, known))}")
