"""Order the tiles of D in groups of rows, so programs that run at the same time share more of the L2 cache."""

import triton
import triton.language as tl


@triton.jit
def grouped_tile(pid, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Return (tile row, tile column) of program `pid`: groups of GROUP_M tile rows, column by column within a group."""
    group = pid // (GROUP_M * tiles_n)
    first_row = group * GROUP_M
    group_rows = tl.minimum(tiles_m - first_row, GROUP_M)
    place = pid - group * GROUP_M * tiles_n
    return first_row + place % group_rows, place // group_rows
