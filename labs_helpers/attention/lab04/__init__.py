"""Lab 04: FlashAttention-2, forward."""
