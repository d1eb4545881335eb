"""Count the bytes that a forward pass keeps for the backward pass."""

from __future__ import annotations

from labs_helpers.transformer.attentions import ATTENTIONS
from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.counts.known import expect_known


def saved_activations(
    config: TransformerConfig, batch: int, length: int, itemsize: int = 4, attention: str = "plain"
) -> dict[str, int]:
    """Return the bytes that forward pass and `next_token_loss` keep for the backward pass, by tensor, for all layers
    together. Their sum is in memory, beside the parameters, when the backward pass begins.

    itemsize: bytes per element of parameters and activations: 4 for float32, 2 for bfloat16 or float16 (not for
    autocast, which also keeps copies of the weights). Tensors that are float32 inside the model (norm, softmax, loss)
    have 4 bytes in any case. attention: 'plain', or a kernel that keeps no L × L tensor: 'sdpa', 'flash'.
    """
    expect_known("attention", attention, ATTENTIONS)
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
            # The softmax's result in float32, and rounded for the product with v.
            "probabilities": config.layers * scores * (4 if itemsize == 4 else 4 + itemsize),
        }
    else:
        outputs = 2  # the kernel keeps its own output, and wo's input has the heads side by side
        inside = {
            "q, k, v": config.layers * itemsize * (stream + 2 * stream // heads * config.key_value_heads),
            "log-sum-exp": config.layers * 4 * tokens * heads,
        }
    return {
        "tokens and targets": 2 * 8 * tokens,
        "rotary cos and sin": 2 * 4 * length * config.head_dim // 2,
        # x in float32 and 1/rms, and the normed x; in float32 the first is x itself.
        "norm": norms * (4 * stream + 4 * tokens + itemsize * stream),
        "norm's output": norms * itemsize * stream,
        **inside,
        "attention's output": config.layers * outputs * itemsize * stream,
        # gate(x), its silu, up(x), and silu · up.
        "mlp": config.layers * 4 * itemsize * tokens * config.hidden,
        "log-softmax of the logits": 4 * tokens * config.vocabulary,
    }
