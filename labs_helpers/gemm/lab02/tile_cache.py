"""A simulated cache in front of DRAM: which tiles of A and B a run of programs finds in it."""

from __future__ import annotations

from collections import OrderedDict


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
