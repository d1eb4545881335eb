"""Exercise 6 of lab 02: the order in which programs take the tiles."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.tile_cache import tile_misses
from labs_helpers.measure.machine import this_machine


@exercise("02/6", "order", points=10, minutes=15, reference=exercises.tile_order, kernel=True)
def tile_order(student):
    for tiles_m, tiles_n, GROUP_M in ((8, 8, 4), (7, 5, 3), (3, 9, 8), (5, 1, 2), (1, 6, 4)):
        case = f"{tiles_m}×{tiles_n} tiles in groups of {GROUP_M}"
        order = [tuple(tile) for tile in student(tiles_m, tiles_n, GROUP_M, device=this_machine().device).tolist()]
        _expect_bijection(case, order, tiles_m, tiles_n)
        expected = [
            (row, column)
            for top in range(0, tiles_m, GROUP_M)
            for column in range(tiles_n)
            for row in range(top, min(top + GROUP_M, tiles_m))
        ]
        if order != expected:
            pid = next(i for i, (got, want) in enumerate(zip(order, expected, strict=True)) if got != want)
            raise Wrong(
                case,
                f"program {pid} gets tile {order[pid]}, expected {expected[pid]}",
                cause=likely(causes(expected, tiles_m, tiles_n), lambda other, order=order: other == order)
                or f"within a group of {GROUP_M} rows the programs walk down the rows first.",
            )
        yield f"{case}: every tile once"
    rows = [(i, j) for i in range(16) for j in range(16)]
    grouped = student(16, 16, 4, device=this_machine().device).tolist()
    before, after = tile_misses(rows, 12, wave=16), tile_misses(grouped, 12, wave=16)
    if after >= before:
        raise Wrong("16×16 tiles", f"{after} misses of the simulated cache, row by row it is {before}")
    yield f"16×16 tiles, 16 at a time, a cache of 12 strips: {after} misses, row by row {before}"


def causes(expected, tiles_m: int, tiles_n: int):
    yield "this is plain row order; the groups are not used.", [(i, j) for i in range(tiles_m) for j in range(tiles_n)]
    yield "row and column are swapped.", [(j, i) for i, j in expected]


def _expect_bijection(case: str, order, tiles_m: int, tiles_n: int) -> None:
    for pid, (row, column) in enumerate(order):
        if not (0 <= row < tiles_m and 0 <= column < tiles_n):
            raise Wrong(
                case,
                f"program {pid} gets tile {(row, column)}, which does not exist.",
                cause="the last group has fewer rows than GROUP_M.",
            )
    if twice := [tile for tile in set(order) if order.count(tile) > 1]:
        raise Wrong(
            case,
            f"tile {min(twice)} is taken by {order.count(min(twice))} programs, and others by none: not a bijection.",
            cause="the place within a group counts from the group's first program and is divided by the rows that this "
            "group has.",
        )
