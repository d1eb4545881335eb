"""Lab 02, exercise 1: count the FLOPs and bytes of D = ReLU(A·B + C) with three kernels and with one."""


def traffic(M, N, K, itemsize):
    """Return (flops, unfused_bytes, fused_bytes) of D = ReLU(A·B + C).

    A is M×K, B is K×N, C and D are M×N, and an element has `itemsize` bytes. One multiplication,
    one addition and one maximum each count as one FLOP. unfused_bytes: DRAM traffic of three
    kernels for A·B, the sum and the ReLU. fused_bytes: DRAM traffic of a single kernel. Each kernel
    reads each of its inputs once and writes its output once.
    """
    # 1. FLOPs: K multiply-adds per element of A·B, then the sum, then the maximum.
    # 2. Unfused: list the elements that each of the three kernels reads and writes; add them up.
    # 3. Fused: keep only the traffic that remains when the intermediates stay in registers.
    ### BEGIN SOLUTION
    flops = 2 * M * N * K + 2 * M * N
    product = M * K + K * N + M * N
    addition = 3 * M * N
    relu = 2 * M * N
    unfused_bytes = (product + addition + relu) * itemsize
    fused_bytes = (M * K + K * N + 2 * M * N) * itemsize
    return flops, unfused_bytes, fused_bytes
    ### END SOLUTION
