"""Lab 02, exercise 6: the order in which programs take the tiles, so that neighbours share what L2 holds."""

import torch
import triton
import triton.language as tl


@triton.jit
def grouped_tile(pid, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """(tile row, tile column) of program `pid` of tiles_m × tiles_n.

    Tile rows are taken in groups of GROUP_M. Within a group the programs walk down its rows first,
    then on to the next column. The last group may have fewer rows.
    """
    # 1. How many programs make one group, and in which group is pid?
    # 2. The group's first row, and how many rows it has: GROUP_M, or what is left at the bottom.
    # 3. pid's place within the group → row and column.
    ### BEGIN SOLUTION
    group = pid // (GROUP_M * tiles_n)
    first_row = group * GROUP_M
    group_rows = tl.minimum(tiles_m - first_row, GROUP_M)
    place = pid - group * GROUP_M * tiles_n
    return first_row + place % group_rows, place // group_rows
    ### END SOLUTION


@triton.jit
def tile_order_kernel(order_ptr, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Program pid writes its tile's row and column to order[pid]."""
    pid = tl.program_id(0)
    row, column = grouped_tile(pid, tiles_m, tiles_n, GROUP_M)
    tl.store(order_ptr + 2 * pid, row)
    tl.store(order_ptr + 2 * pid + 1, column)


def tile_order(tiles_m, tiles_n, GROUP_M, device=None):
    """The tile of each program, in the programs' order: int32, (tiles_m · tiles_n, 2)."""
    order = torch.full((tiles_m * tiles_n, 2), -1, dtype=torch.int32, device=device)
    tile_order_kernel[(tiles_m * tiles_n,)](order, tiles_m, tiles_n, GROUP_M=GROUP_M)
    return order
