"""FlashAttention-2: `flash_attention.flash_attention(q, k, v, causal, scale)`, differentiable; labs 04 and 05."""
