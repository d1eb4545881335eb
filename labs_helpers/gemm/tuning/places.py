"""How well a result's tiles fill the places that a GPU has for programs."""

from __future__ import annotations

from labs_helpers.gemm.configs import Config


def places_filled(M: int, N: int, config: Config, at_once: int) -> tuple[int, float]:
    """(tiles of an M×N result, the share of places that they fill until the last is done). at_once: places, ≥ 1."""
    tiles = -(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)
    return tiles, tiles / (tiles + -tiles % at_once)
