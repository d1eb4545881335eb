"""The kernels of `fused_matmul`: a portable one, one for Hopper, one that splits K, and one that copies operands."""
