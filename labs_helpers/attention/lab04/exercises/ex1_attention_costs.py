"""Lab 04, exercise 1: what attention moves and keeps, with the score matrix in memory and without."""


def attention_costs(B, H, L, D, itemsize, BLOCK_M):
    """Bytes moved, and extra bytes alive at the peak, of plain and of tiled attention.

    Q, K, V and O are (B, H, L, D) with `itemsize` bytes an element; L is a multiple of BLOCK_M.
    Plain: three kernels, S = Q·Kᵀ, P = softmax(S), O = P·V. Each reads its inputs once and writes
    its output once. S and P are L×L a head, in the dtype of Q, and P is a tensor of its own.
    Tiled: one kernel. A program takes BLOCK_M rows of Q, reads all of K and V of its head, and
    writes its rows of O and one float32 a row, the log-sum-exp.
    Extra is what is alive beside Q, K, V and O.
    Returns (plain_bytes, plain_extra, tiled_bytes, tiled_extra).
    """
    # 1. The elements of Q (as many as of K, V and O), and those of S (as many as of P).
    # 2. Plain: what each of the three kernels reads and writes; S and P live at the same time.
    # 3. Tiled: how many programs a head has, and what each of them reads; the log-sum-exp.
    ### BEGIN SOLUTION
    rows = B * H * L
    tensor, scores = rows * D, rows * L
    plain_bytes = itemsize * ((2 * tensor + scores) + 2 * scores + (scores + 2 * tensor))
    plain_extra = itemsize * 2 * scores
    lse = 4 * rows
    tiled_bytes = itemsize * (2 * tensor + L // BLOCK_M * 2 * tensor) + lse
    return plain_bytes, plain_extra, tiled_bytes, lse
    ### END SOLUTION
