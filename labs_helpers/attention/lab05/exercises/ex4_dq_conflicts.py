"""Lab 05, exercise 4: count the programs that add to each tile of dQ in the one kernel for all three gradients."""


def dq_conflicts(Lq, Lk, BLOCK_M, BLOCK_N, causal=False):
    """Return how many programs add to each query tile of dQ, a list of cdiv(Lq, BLOCK_M) numbers.

    There is one program per tile of BLOCK_N keys. It adds to every query tile that sees one of its
    keys. If causal, query i sees the keys j ≤ i + Lk − Lq.
    """
    # 1. Compute the number of query tiles and of key tiles. The last of each may be partly filled.
    # 2. Not causal: which key tiles add to a query tile?
    # 3. Causal: which is the last key that the tile's last row sees? It may be before key 0.
    ### BEGIN SOLUTION
    query_tiles, key_tiles = -(-Lq // BLOCK_M), -(-Lk // BLOCK_N)
    if not causal:
        return [key_tiles] * query_tiles
    last_rows = [min((i + 1) * BLOCK_M, Lq) - 1 for i in range(query_tiles)]
    last_keys = [row + Lk - Lq for row in last_rows]
    return [max(key // BLOCK_N + 1, 0) for key in last_keys]
    ### END SOLUTION
