"""Check exercise 6 of lab 02: the order in which programs take the tiles."""

from functools import partial

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, likely_in_all, run_watched
from labs_helpers.course.verdict.left_alone import expect_new_results
from labs_helpers.course.verdict.telltales import telltales
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.checks.orders import WRONG_ORDERS, in_groups, order_of
from labs_helpers.gemm.lab02.checks.whole_numbers import made_whole
from labs_helpers.gemm.lab02.tile_cache import tile_misses
from labs_helpers.measure.machine import this_machine

# (tiles_m, tiles_n, GROUP_M). The last group is full, shorter, or the only one, or its first pid is not a multiple of
# its number of rows.
CASES = ((8, 8, 4), (7, 5, 3), (8, 4, 5), (3, 9, 8), (5, 1, 2), (1, 6, 4))


@exercise("02/6", "order", points=10, minutes=15, reference=exercises.tile_order, kernel=True)
def tile_order(student):
    orders = [_order(student, *case) for case in CASES]
    for (tiles_m, tiles_n, GROUP_M), order in zip(CASES, orders, strict=True):
        case = _name(tiles_m, tiles_n, GROUP_M)
        if said := _wrong(order, tiles_m, tiles_n, GROUP_M):
            raise Wrong(
                case,
                said,
                cause=telltales(student) or likely_in_all(_causes(orders), orders),
                advice="work out the group, its first row, its number of rows and the place of that program by hand.",
            )
        yield f"{case}: every tile once"
    grouped = _order(student, 16, 16, 4)
    rows = [(i, j) for i in range(16) for j in range(16)]
    before, after = tile_misses(rows, 8, wave=16), tile_misses(grouped, 8, wave=16)
    if after >= before:
        raise Wrong("16×16 tiles", f"the simulated cache misses {after} times, and {before} times in row order")
    again = partial(student, 16, 16, 4, device=this_machine().device)
    expect_new_results("16×16 tiles", again(), again)
    yield f"16×16 tiles, 16 at a time, a cache of 8 strips: {after} misses, {before} in row order"


def _order(student, tiles_m: int, tiles_n: int, GROUP_M: int) -> list[tuple[int, int]]:
    """Return the order as a list of pairs. Raises Wrong if a kernel did not compute it."""
    case = _name(tiles_m, tiles_n, GROUP_M)
    with made_whole() as floats:
        run = run_watched(case, student, tiles_m, tiles_n, GROUP_M, device=this_machine().device)
    if not isinstance(run.value, torch.Tensor) or tuple(run.value.shape) != (tiles_m * tiles_n, 2):
        raise Wrong(case, f"returned {getattr(run.value, 'shape', run.value)!r:.60}; return a tensor (tiles, 2)")
    run.expect_written_once("order", "program pid writes order[pid], its tile's row and column")
    run.expect_alone()
    if floats:
        raise Wrong(
            case,
            "a row or a column is a float. The store truncates it, but the compiler does not accept it as an index.",
            cause="`/` divides two integers into a float; `//` gives an integer.",
        )
    return [tuple(tile) for tile in run.value.tolist()]


def _wrong(order, tiles_m: int, tiles_n: int, GROUP_M: int) -> str:
    expected = order_of(in_groups, tiles_m, tiles_n, GROUP_M)
    for pid, (row, column) in enumerate(order):
        if not (0 <= row < tiles_m and 0 <= column < tiles_n):
            return f"program {pid} gets tile {(row, column)}, which does not exist; expected {expected[pid]}"
    if twice := [tile for tile in set(order) if order.count(tile) > 1]:
        programs = order.count(min(twice))
        return f"{programs} programs take tile {min(twice)}, and no program takes some other tile"
    pid = next((pid for pid, tile in enumerate(order) if tile != expected[pid]), None)
    return "" if pid is None else f"program {pid} gets tile {order[pid]}, expected {expected[pid]}"


def _causes(orders):
    """Return, for each case, the order that each common mistake would give."""
    return [[(said, order_of(wrong, *case)) for said, wrong in WRONG_ORDERS] for case in CASES]


def _name(tiles_m: int, tiles_n: int, GROUP_M: int) -> str:
    return f"{tiles_m}×{tiles_n} tiles in groups of {GROUP_M}"
