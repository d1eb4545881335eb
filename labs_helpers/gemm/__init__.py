"""The fused GEMM D = ReLU(A·B + C): one step of the ladder a file, the last `fused_matmul(a, b, c)`."""

from labs_helpers.bench.machine import prepare_triton

prepare_triton()  # before the first kernel is decorated: it decides between interpreter and compiler

from labs_helpers.gemm.copy_tiles import copy_tiles  # noqa: E402
from labs_helpers.gemm.fused_matmul import fused_matmul  # noqa: E402
from labs_helpers.gemm.masked_matmul import masked_matmul  # noqa: E402
from labs_helpers.gemm.matmul_add_relu import matmul_add_relu  # noqa: E402
from labs_helpers.gemm.plan import plan  # noqa: E402
from labs_helpers.gemm.tile_cache import tile_misses  # noqa: E402
from labs_helpers.gemm.tile_matmul import tile_matmul  # noqa: E402
from labs_helpers.gemm.tile_order import tile_order  # noqa: E402
from labs_helpers.gemm.traffic import traffic  # noqa: E402

__all__ = ["copy_tiles", "fused_matmul", "masked_matmul", "matmul_add_relu", "plan", "tile_matmul", "tile_misses",
           "tile_order", "traffic"]
