"""Lab 05: FlashAttention-2, backward."""
