"""Choose block sizes, warps and stages of the fused kernel by GPU, dtype and matrix size."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch

from labs_helpers.gemm.tuned_configs import tuned
from labs_helpers.measure.datasheet import DATASHEET


@dataclass(frozen=True)
class Config:
    """A configuration of a kernel: BLOCK_* in elements, GROUP_M in tile rows, num_warps per program, num_stages."""

    BLOCK_M: int
    BLOCK_N: int
    BLOCK_K: int
    GROUP_M: int = 8
    num_warps: int = 4
    num_stages: int = 3

    def keywords(self) -> dict[str, int]:
        """Return all fields by name, as keywords of a launch."""
        return asdict(self)

    def without_order(self) -> dict[str, int]:
        """Return the keywords without GROUP_M, for a kernel without groups."""
        return {name: value for name, value in asdict(self).items() if name != "GROUP_M"}


def default_config(M: int, N: int, K: int, dtype: torch.dtype, architecture: str | None) -> Config:
    """Return a configuration that fits the chip. architecture: 'sm_90', 'gfx942', …; None for the interpreter.

    On every chip it uses the largest tile that still gives nearly every SM a tile, because tiles of
    BLOCK_M × BLOCK_N load A N/BLOCK_N times and B M/BLOCK_M times.
    """
    if architecture is None:
        return Config(64, 64, 32)
    if not architecture.startswith("sm_"):
        return Config(128, 128, 32, num_warps=4, num_stages=2)
    capability = int(architecture[3:])
    if dtype == torch.float32:
        return Config(64, 64, 32, num_stages=3 if capability >= 80 else 2)
    if capability < 80:
        return _for_t4(M, N, K)
    if capability < 90:
        return Config(128, 128, 32, num_stages=4) if _tiles(M, N, 128, 128) >= 80 else Config(64, 64, 32)
    if capability >= 100 and _tiles(M, N, 128, 128) >= 96:
        return Config(128, 128, 64, num_warps=8, num_stages=4)  # compiled, not measured: 128×256 spills
    if _tiles(M, N, 128, 256) >= 96:
        return Config(128, 256, 64, num_warps=8, num_stages=3)
    if _tiles(M, N, 128, 128) >= 96:
        return Config(128, 128, 64, num_warps=4, num_stages=3)
    return Config(64, 128, 64, num_warps=4, num_stages=5)


def _for_t4(M: int, N: int, K: int) -> Config:
    """Return the first entry of tuned/t4.json, largest tile first, that gives every SM a tile and does not spill.

    If no entry does, return the last.
    """
    aligned = M % 16 == N % 16 == K % 16 == 0
    entries = [e for e in tuned("fused_matmul", torch.float16, "t4") if aligned or not e["multiples_of_16"]]
    configs = [Config(**e["config"]) for e in entries]
    enough = DATASHEET["T4"].multiprocessors
    return next((c for c in configs if _tiles(M, N, c.BLOCK_M, c.BLOCK_N) >= enough), configs[-1])


def _tiles(M: int, N: int, BLOCK_M: int, BLOCK_N: int) -> int:
    return -(-M // BLOCK_M) * -(-N // BLOCK_N)
