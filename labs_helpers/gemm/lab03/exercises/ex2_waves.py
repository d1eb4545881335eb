"""Lab 03, exercise 2: count tiles and waves, and compute how full the last wave is."""


def waves(M, N, config, at_once):
    """Return (tiles, waves, last): an M×N result's tiles and waves, and how full the last wave is.

    config: a Config. at_once: how many programs the GPU runs at a time, ≥ 1. `last` is a fraction
    in (0, 1], with 1.0 for a full last wave.
    """
    # 1. Count the tiles along M and along N; a partial tile is a tile too.
    # 2. Count the waves of at_once tiles; only the last one may be partly empty.
    # 3. Divide the number of tiles in the last wave by at_once.
    ### BEGIN SOLUTION
    tiles = -(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)
    count = -(-tiles // at_once)
    left = tiles - (count - 1) * at_once
    return tiles, count, left / at_once
    ### END SOLUTION
