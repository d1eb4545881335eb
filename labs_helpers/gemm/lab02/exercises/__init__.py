"""The exercises of lab 02, one file each; a file holds the stub and the reference answer."""

from labs_helpers.gemm.lab02.exercises.ex1_traffic import traffic
from labs_helpers.gemm.lab02.exercises.ex2_copy_tiles import copy_tiles
from labs_helpers.gemm.lab02.exercises.ex3_tile_matmul import tile_matmul
from labs_helpers.gemm.lab02.exercises.ex4_masked_matmul import masked_matmul
from labs_helpers.gemm.lab02.exercises.ex5_matmul_add_relu import matmul_add_relu
from labs_helpers.gemm.lab02.exercises.ex6_tile_order import tile_order

__all__ = ["copy_tiles", "masked_matmul", "matmul_add_relu", "tile_matmul", "tile_order", "traffic"]
