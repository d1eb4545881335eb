"""Lab 00's first kernels: vector add, transposed copy and row sum; and the roof that limits an operation."""
