"""Count parameters, and the bytes that a training step keeps for each of them."""

from __future__ import annotations

from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.counts.known import expect_known

# Bytes per parameter: (parameters, gradients, optimizer states). AdamW keeps two moments.
LAYOUTS = {
    "bf16 with float32 master": (2, 2, 4 + 4 + 4),  # master weights count as the optimizer's
    "autocast over float32": (4, 4, 4 + 4),
    "bf16": (2, 2, 2 + 2),
}


def parameters(config: TransformerConfig) -> dict[str, int]:
    """Return the number of parameters by part; their sum is the model's. A tied output is the embedding and counts
    0."""
    W, kv_width = config.width, config.key_value_heads * config.head_dim
    return {
        "embedding": config.vocabulary * W,
        "attention": config.layers * (2 * W * W + 2 * W * kv_width),  # wq and wo, wk and wv
        "mlp": config.layers * 3 * W * config.hidden,  # gate, up, down
        "norms": (2 * config.layers + 1) * W,
        "output": 0 if config.tied else config.vocabulary * W,
    }


def state_bytes(config: TransformerConfig, layout: str) -> dict[str, int]:
    """Return the bytes of 'parameters', 'gradients' and 'optimizer' (AdamW) in one of LAYOUTS: 16, 16 and 8 per
    parameter.

    ValueError for another layout.
    """
    expect_known("layout", layout, LAYOUTS)
    count = sum(parameters(config).values())
    sizes = zip(("parameters", "gradients", "optimizer"), LAYOUTS[layout], strict=True)
    return {name: count * size for name, size in sizes}
