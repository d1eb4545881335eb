"""Lab 04, exercise 1: the bytes that attention moves and keeps, with and without a score matrix in memory."""


def attention_costs(B, H, L, D, itemsize, BLOCK_M):
    """Count the bytes moved, and the extra bytes at the peak, of plain and of tiled attention.

    Q, K, V and O are (B, H, L, D) with `itemsize` bytes per element; L is a multiple of BLOCK_M.
    Plain attention runs three kernels: S = Q·Kᵀ, P = softmax(S) and O = P·V. Each kernel reads its
    inputs once and writes its output once. S and P are separate L×L tensors per head, in Q's dtype.
    Tiled attention runs one kernel. Each program reads BLOCK_M rows of Q and all of its head's K
    and V, and writes its rows of O and one float32 per row, the log-sum-exp.
    Extra bytes belong to tensors that are alive at the peak and are none of Q, K, V and O.
    Returns (plain_bytes, plain_extra, tiled_bytes, tiled_extra).
    """
    # 1. Count the elements of Q (K, V and O have the same number) and of S (P has the same number).
    # 2. Plain: add what each kernel reads and writes. S and P are alive at the same time.
    # 3. Tiled: how many programs does a head have, and what does each read? Add the log-sum-exp.
    ### BEGIN SOLUTION
    rows = B * H * L
    tensor, scores = rows * D, rows * L
    plain_bytes = itemsize * ((2 * tensor + scores) + 2 * scores + (scores + 2 * tensor))
    plain_extra = itemsize * 2 * scores
    lse = 4 * rows
    tiled_bytes = itemsize * (2 * tensor + L // BLOCK_M * 2 * tensor) + lse
    return plain_bytes, plain_extra, tiled_bytes, lse
    ### END SOLUTION
