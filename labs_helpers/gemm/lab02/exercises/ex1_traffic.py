"""Lab 02, exercise 1: what D = ReLU(A·B + C) computes and moves, as three kernels and as one."""


def traffic(M, N, K, itemsize):
    """FLOPs and DRAM bytes of D = ReLU(A·B + C): A is M×K, B is K×N, C and D are M×N.

    An element has `itemsize` bytes. Each kernel reads each of its inputs once and writes its output
    once. One multiplication, one addition and one maximum each count as one FLOP.
    Returns (flops, unfused_bytes, fused_bytes); unfused means three kernels: A·B, sum, ReLU.
    """
    # 1. FLOPs: K multiply-adds an element of A·B, then the sum, then the maximum.
    # 2. Unfused: list what each of the three kernels reads and writes, in elements, and add it up.
    # 3. Fused: what is left when the intermediates stay in registers.
    ### BEGIN SOLUTION
    flops = 2 * M * N * K + 2 * M * N
    product = M * K + K * N + M * N
    addition = 3 * M * N
    relu = 2 * M * N
    unfused_bytes = (product + addition + relu) * itemsize
    fused_bytes = (M * K + K * N + 2 * M * N) * itemsize
    return flops, unfused_bytes, fused_bytes
    ### END SOLUTION
