"""Data × tensor parallelism: a grid of ranks, split layers, and lab 01's transformer on both (lab 07)."""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
    from labs_helpers.tensor_parallel.parallel_transformer import ParallelTransformer

__all__ = ["ColumnParallelLinear", "ParallelTransformer", "RowParallelLinear"]
__getattr__, __dir__ = lazily(
    __name__,
    {"ColumnParallelLinear": "layers", "ParallelTransformer": "parallel_transformer", "RowParallelLinear": "layers"},
)
