"""The checks of lab 02, one file per exercise; the notebook calls `check.name(name)`."""

from labs_helpers.course.lab_summary import summary
from labs_helpers.gemm.lab02.checks.ex1_traffic import traffic
from labs_helpers.gemm.lab02.checks.ex2_copy_tiles import copy_tiles
from labs_helpers.gemm.lab02.checks.ex3_tile_matmul import tile_matmul
from labs_helpers.gemm.lab02.checks.ex4_masked_matmul import masked_matmul
from labs_helpers.gemm.lab02.checks.ex5_matmul_add_relu import matmul_add_relu
from labs_helpers.gemm.lab02.checks.ex6_tile_order import tile_order
from labs_helpers.gemm.lab02.checks.ex7_silu_matmul import silu_matmul

__all__ = [
    "copy_tiles",
    "masked_matmul",
    "matmul_add_relu",
    "silu_matmul",
    "summary",
    "tile_matmul",
    "tile_order",
    "traffic",
]
