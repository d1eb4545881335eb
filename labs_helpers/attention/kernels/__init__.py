"""The kernels behind `flash_attention`: portable ones, and those for Hopper."""
