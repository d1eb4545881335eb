"""List the configurations of the Hopper kernel from which the time model chooses."""

from __future__ import annotations

from dataclasses import replace

from labs_helpers.gemm.kernels.hopper import HopperConfig

SHARED_LIMIT = 232_448  # bytes per program, compute capability 9.0
BARRIERS = 1024  # bytes, more than the barriers need
# (BLOCK_M, BLOCK_N, CONSUMERS). An accumulator takes BLOCK_M · BLOCK_N / CONSUMERS / 128 registers per thread, at most
# 128.
TILES = (
    (64, 64, 1),
    (64, 128, 1),
    (64, 192, 1),
    (64, 256, 1),
    (128, 64, 1),
    (128, 128, 1),
    (128, 64, 2),
    (128, 128, 2),
    (128, 192, 2),
    (128, 256, 2),
    (192, 64, 3),
    (192, 128, 3),
    (192, 192, 3),
    (256, 64, 2),
    (256, 128, 2),
)
BLOCK_K = (64, 128)
MOST_STAGES = 8


def hopper_grid() -> list[HopperConfig]:
    """Return every tile with every BLOCK_K and as many stages as fit into shared memory, at least 3."""
    found = []
    for block_m, block_n, consumers in TILES:
        for block_k in BLOCK_K:
            config = HopperConfig(block_m, block_n, block_k, STAGES=0, CONSUMERS=consumers)
            stage = replace(config, STAGES=1).shared_bytes - config.shared_bytes
            stages = min((SHARED_LIMIT - BARRIERS - config.shared_bytes) // stage, MOST_STAGES)
            if stages >= 3:
                found.append(replace(config, STAGES=stages))
    return found
