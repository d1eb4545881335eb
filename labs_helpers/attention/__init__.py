"""FlashAttention-2: a step of the lab a file, and `flash_attention(q, k, v, causal, scale)`, differentiable."""

from labs_helpers.bench.machine import prepare_triton

prepare_triton()  # before the first kernel is decorated: it decides between interpreter and compiler

from labs_helpers.attention.attention_costs import attention_costs  # noqa: E402
from labs_helpers.attention.causal_attention import causal_attention  # noqa: E402
from labs_helpers.attention.flash_attention import (  # noqa: E402
    attention_backward,
    attention_forward,
    flash_attention,
)
from labs_helpers.attention.merge import merge  # noqa: E402
from labs_helpers.attention.plan import plan  # noqa: E402
from labs_helpers.attention.row_softmax import row_softmax  # noqa: E402
from labs_helpers.attention.tile_attention import tile_attention  # noqa: E402

__all__ = ["attention_backward", "attention_costs", "attention_forward", "causal_attention", "flash_attention", "merge",
           "plan", "row_softmax", "tile_attention"]
