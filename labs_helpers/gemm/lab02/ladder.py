"""The exercises of lab 02 as candidates for the GEMM study and for the compile report.

python -m labs_helpers.gemm.lab02.ladder          # run the GEMM study on this machine, with these candidates
"""

from __future__ import annotations

from functools import partial

from labs_helpers.gemm import study
from labs_helpers.gemm.compile_report import FUSED
from labs_helpers.gemm.configs import Config, default_config
from labs_helpers.gemm.lab02.exercises import masked_matmul, matmul_add_relu, tile_matmul
from labs_helpers.launch import program
from labs_helpers.measure.machine import this_machine


def unfused_by_us(a, b, c):
    """Compute D = ReLU(A·B + C) without fusing: exercise 4's product, then PyTorch's addition and ReLU."""
    return masked_matmul(a, b).add_(c).relu_()


def with_larger_tiles(function):
    """Wrap `function` to run with the block sizes, warps and stages of `fused_matmul` on this machine."""

    def larger(a, b, c):
        config = default_config(*c.shape, a.shape[1], a.dtype, this_machine().architecture)
        return function(a, b, c, **config.without_order())

    return larger


LADDER = {
    "masked_matmul + add + relu": unfused_by_us,
    "matmul_add_relu, 64×64×32": matmul_add_relu,
    "matmul_add_relu, larger tiles": with_larger_tiles(matmul_add_relu),
}


def _blocks(config: Config) -> dict:
    return {name: getattr(config, name) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")}


# Name → function of (a, b, c, config) that starts the kernel. The first two ignore C.
KERNELS = {
    "tile_matmul": lambda a, b, c, config: tile_matmul(a, b, **_blocks(config)),
    "masked_matmul": lambda a, b, c, config: masked_matmul(a, b, **_blocks(config)),
    "matmul_add_relu": lambda a, b, c, config: matmul_add_relu(a, b, c, **_blocks(config)),
    **FUSED,
}


if __name__ == "__main__":
    program.run(partial(study.main, ladder=LADDER))
