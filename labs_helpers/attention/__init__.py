"""FlashAttention-2: `flash_attention(q, k, v, causal, scale)`, differentiable; labs 04 and 05."""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.attention.flash import flash_attention

__all__ = ["flash_attention"]
__getattr__, __dir__ = lazily(__name__, {"flash_attention": "flash"})
