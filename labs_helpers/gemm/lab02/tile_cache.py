"""Simulate a cache in front of DRAM that holds strips of A and B, and count its misses."""

from __future__ import annotations

from collections import OrderedDict


def in_groups(tiles_m: int, tiles_n: int, GROUP_M: int) -> list[tuple[int, int]]:
    """Return the tiles in groups of GROUP_M tile rows, column by column within a group; GROUP_M = 1 is row order."""
    return [
        (row, column)
        for top in range(0, tiles_m, GROUP_M)
        for column in range(tiles_n)
        for row in range(top, min(top + GROUP_M, tiles_m))
    ]


def wave_rows(GROUP_M: int, tiles_m: int, tiles_n: int, wave: int, BLOCK_M: int, BLOCK_N: int) -> float:
    """Return the rows of A plus the columns of B that a wave of programs needs, in groups of GROUP_M tile rows.

    The wave covers GROUP_M tile rows and wave / GROUP_M tile columns, or all of them if the matrix has fewer.
    """
    rows = min(GROUP_M, tiles_m)
    columns = min(wave / rows, tiles_n)
    return max(rows, wave / columns) * BLOCK_M + columns * BLOCK_N


def tile_misses(order, capacity: int, wave: int = 1) -> int:
    """Count the strips that programs load from DRAM when they run in `order`, with a least-recently-used cache.

    order: sequence of (tile row, tile column), or an int tensor (programs, 2). Tile (i, j) needs strip i of A
    (its rows) and strip j of B (its columns). capacity: number of strips that fit into the cache. wave: number of
    programs that run at the same time and need their strips together. Raises ValueError if either is below 1.
    """
    if capacity < 1 or wave < 1:
        raise ValueError(f"capacity and wave must be at least 1, not {capacity} and {wave}")
    tiles = [tuple(int(v) for v in tile) for tile in order]
    held: OrderedDict = OrderedDict()
    misses = 0
    for start in range(0, len(tiles), wave):
        running = tiles[start : start + wave]
        for strip in dict.fromkeys([("A", i) for i, _ in running] + [("B", j) for _, j in running]):
            if strip in held:
                held.move_to_end(strip)
                continue
            misses += 1
            held[strip] = True
            if len(held) > capacity:
                held.popitem(last=False)
    return misses
