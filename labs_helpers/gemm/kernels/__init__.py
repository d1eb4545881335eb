"""The kernels behind `fused_matmul`: a portable one, and one for Hopper."""
