"""List the 144 configurations that lab 03 searches."""

from __future__ import annotations

from itertools import product

from labs_helpers.gemm.configs import Config

BLOCK_M = BLOCK_N = (64, 128, 256)
BLOCK_K = (32, 64)
NUM_WARPS = (4, 8)
NUM_STAGES = (2, 3, 4, 5)


def grid() -> list[Config]:
    """Return every combination in a fixed order, with GROUP_M = 8."""
    return [
        Config(m, n, k, 8, warps, stages)
        for m, n, k, warps, stages in product(BLOCK_M, BLOCK_N, BLOCK_K, NUM_WARPS, NUM_STAGES)
    ]
