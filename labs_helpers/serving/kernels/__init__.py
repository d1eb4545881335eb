"""The serving engine's own kernels."""
