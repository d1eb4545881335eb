"""A simulated cache in front of DRAM: which tiles of A and B a run of programs finds in it."""

from __future__ import annotations

from collections import OrderedDict


def in_groups(tiles_m: int, tiles_n: int, GROUP_M: int) -> list[tuple[int, int]]:
    """The tiles in groups of GROUP_M tile rows, within a group column by column; GROUP_M = 1 is row by row."""
    return [
        (row, column)
        for top in range(0, tiles_m, GROUP_M)
        for column in range(tiles_n)
        for row in range(top, min(top + GROUP_M, tiles_m))
    ]


def wave_rows(GROUP_M: int, tiles_m: int, tiles_n: int, wave: int, BLOCK_M: int, BLOCK_N: int) -> float:
    """Rows of A plus columns of B that `wave` programs need together when they fill groups of GROUP_M tile rows.

    They are GROUP_M tile rows and wave / GROUP_M tile columns, as far as there are so many.
    """
    rows = min(GROUP_M, tiles_m)
    columns = min(wave / rows, tiles_n)
    return max(rows, wave / columns) * BLOCK_M + columns * BLOCK_N


def tile_misses(order, capacity: int, wave: int = 1) -> int:
    """DRAM loads of operand strips when programs run in `order` behind a least-recently-used cache.

    order: sequence of (tile row, tile column), or an int tensor (programs, 2). Tile (i, j) needs strip i of A
    (its rows) and strip j of B (its columns). capacity: how many strips fit. wave: how many programs run at the
    same time; each wave needs its strips together. ValueError for capacity or wave below 1.
    """
    if capacity < 1 or wave < 1:
        raise ValueError(f"capacity and wave are at least 1, not {capacity} and {wave}")
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
