"""Lab 05, exercise 4: how many programs add to each tile of dQ when one kernel computes all three gradients."""


def dq_conflicts(Lq, Lk, BLOCK_M, BLOCK_N, causal=False):
    """For each query tile, how many programs add to it: a list of cdiv(Lq, BLOCK_M) numbers.

    One program a key tile of BLOCK_N keys. It adds to every query tile that sees one of its keys;
    if causal, query i sees the keys j ≤ i + Lk − Lq.
    """
    # 1. How many query tiles and key tiles are there? The last of each may be partly filled.
    # 2. Not causal: which key tiles add to a query tile?
    # 3. Causal: up to which key does the tile's last row see? That may be before key 0.
    ### BEGIN SOLUTION
    query_tiles, key_tiles = -(-Lq // BLOCK_M), -(-Lk // BLOCK_N)
    if not causal:
        return [key_tiles] * query_tiles
    last_rows = [min((i + 1) * BLOCK_M, Lq) - 1 for i in range(query_tiles)]
    last_keys = [row + Lk - Lq for row in last_rows]
    return [max(key // BLOCK_N + 1, 0) for key in last_keys]
    ### END SOLUTION
