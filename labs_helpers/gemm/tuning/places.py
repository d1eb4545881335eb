"""Compute how well the tiles of a result fill a GPU's waves."""

from __future__ import annotations

from labs_helpers.gemm.configs import Config


def places_filled(M: int, N: int, config: Config, at_once: int) -> tuple[int, float]:
    """Return (tiles of an M×N result, share of all places in the waves that they fill). at_once: places per wave."""
    tiles = -(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)
    return tiles, tiles / (tiles + -tiles % at_once)
