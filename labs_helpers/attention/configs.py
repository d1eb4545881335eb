"""Block sizes, warps and stages of the portable kernels, by GPU, head dimension and dtype."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch

DIRECTIONS = ("forward", "key_value_gradients", "query_gradient")


@dataclass(frozen=True)
class Config:
    """Tile sizes and launch options of a kernel.

    BLOCK_M query rows and BLOCK_N key rows; num_warps per program, with 32 threads each (64 on AMD); num_stages of the
    pipelined loads in the loop.
    """

    BLOCK_M: int
    BLOCK_N: int
    num_warps: int = 4
    num_stages: int = 2

    def keywords(self) -> dict:
        """Return all fields by name, for a launch."""
        return asdict(self)


# Family → (head dim up to 64, up to 128), each with a Config for forward, dK/dV and dQ in 16-bit floats. According to
# the compile report, these tiles fit into shared memory and spill few registers or none. sm_90 starts from a first
# probe on an H200; the others were compiled, not measured.
_HALF = {
    "sm_75": (
        (Config(64, 64), Config(64, 64, 8), Config(64, 64)),
        (Config(128, 64, 8), Config(32, 64, 8), Config(64, 64, 8)),
    ),
    "sm_80": (
        (Config(128, 64), Config(64, 128, 8), Config(128, 64, 8)),
        (Config(128, 32, 8), Config(64, 64, 8), Config(64, 64, 8)),
    ),
    "sm_90": (
        (Config(128, 64, 4, 3), Config(64, 64, 4, 3), Config(128, 64, 8, 3)),
        (Config(128, 128, 8, 3), Config(64, 128, 8, 3), Config(128, 64, 8, 3)),
    ),
    "sm_100": (
        (Config(128, 64, 4, 3), Config(64, 128, 8), Config(128, 64, 8)),
        (Config(128, 128, 8), Config(64, 128, 8), Config(128, 64, 8)),
    ),
    "gfx942": (
        (Config(128, 64), Config(64, 64, 4, 1), Config(64, 64)),
        (Config(128, 32), Config(32, 64, 4, 1), Config(128, 32)),
    ),
}
# float32 products do not use tensor cores and keep both operands in registers, so all tiles are small.
_SINGLE = (
    (Config(32, 32, 4, 1), Config(16, 32, 4, 1), Config(32, 32, 4, 1)),
    (Config(32, 16, 4, 1), Config(16, 32, 8, 1), Config(32, 16, 4, 1)),
)
_INTERPRETED = Config(64, 64)


def default_config(direction: str, D: int, dtype, architecture: str | None) -> Config:
    """Return the configuration of one kernel.

    direction: one of DIRECTIONS. D: head dimension, at most 128. architecture: 'sm_90', 'gfx942', …; None for the
    interpreter.
    """
    if architecture is None:
        return _INTERPRETED
    table = _SINGLE if dtype == torch.float32 else _HALF[family(architecture)]
    return table[D > 64][DIRECTIONS.index(direction)]


def family(architecture: str) -> str:
    """Return a GPU's key in the table.

    Consumer chips of 8.x and 12.x have the instructions of sm_80 but less shared memory; the tiles of sm_80 fit there.
    """
    if not architecture.startswith("sm_"):
        return "gfx942"
    capability = int(architecture[3:])
    if capability < 80:
        return "sm_75"
    return {90: "sm_90", 100: "sm_100", 103: "sm_100"}.get(capability, "sm_80")
