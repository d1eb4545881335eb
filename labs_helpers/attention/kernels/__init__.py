"""The kernels of `flash_attention`: portable kernels, kernels for Hopper, and kernels for decoding."""
