"""The order in which programs take the tiles of D, so that neighbours in time share what the L2 cache holds."""

import triton
import triton.language as tl


@triton.jit
def grouped_tile(pid, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """(tile row, tile column) of program `pid`: groups of GROUP_M tile rows, within a group column by column."""
    group = pid // (GROUP_M * tiles_n)
    first_row = group * GROUP_M
    group_rows = tl.minimum(tiles_m - first_row, GROUP_M)
    place = pid - group * GROUP_M * tiles_n
    return first_row + place % group_rows, place // group_rows
