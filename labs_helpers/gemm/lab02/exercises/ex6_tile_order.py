"""Lab 02, exercise 6: order the tiles in groups of rows, to get more hits in the L2 cache."""

import torch
import triton
import triton.language as tl


@triton.jit
def grouped_tile(pid, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Return (tile row, tile column) of program `pid` in a grid of tiles_m × tiles_n tiles.

    A group consists of GROUP_M tile rows; the last group may have fewer. Within a group, the
    programs go down all its rows in one column, then on to the next column.
    """
    # 1. How many programs form one group, and which group does pid belong to?
    # 2. Find the group's first row and its number of rows: GROUP_M, or the rest at the bottom.
    # 3. Turn pid's place within the group into a row and a column.
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
    """Return each program's tile row and column: int32, (tiles_m · tiles_n, 2)."""
    order = torch.full((tiles_m * tiles_n, 2), -1, dtype=torch.int32, device=device)
    tile_order_kernel[(tiles_m * tiles_n,)](order, tiles_m, tiles_n, GROUP_M=GROUP_M)
    return order
