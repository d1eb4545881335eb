"""Lab 12: Quantised weights, and kernels that read them."""
