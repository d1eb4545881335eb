"""FlashAttention-2 for labs 04 and 05: the differentiable `flash_attention(q, k, v, causal, scale)`."""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.attention.flash import flash_attention

__all__ = ["flash_attention"]
__getattr__, __dir__ = lazily(__name__, {"flash_attention": "flash"})
