"""The fused GEMM D = ReLU(A·B + C): `fused_matmul.fused_matmul(a, b, c)` and what it is made of; labs 02 and 03."""
