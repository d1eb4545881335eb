"""Lab 03, exercise 2: how many tiles, how many waves of them, and how full the last wave is."""


def waves(M, N, config, at_once):
    """(tiles, waves, last): the programs of an M×N result, their waves, how full the last is.

    config: a Config. at_once: how many programs the GPU runs at a time, ≥ 1. `last` is a fraction
    in (0, 1]: 1.0 when the last wave leaves no place empty.
    """
    # 1. Tiles: along M, along N; a partial tile is a tile too.
    # 2. Waves of at_once tiles: all of them full but the last.
    # 3. How many tiles are left for the last wave, over at_once?
    ### BEGIN SOLUTION
    tiles = -(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)
    count = -(-tiles // at_once)
    left = tiles - (count - 1) * at_once
    return tiles, count, left / at_once
    ### END SOLUTION
