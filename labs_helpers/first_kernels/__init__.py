"""First kernels: a vector, a matrix and its transpose, a row, and which roof limits an operation."""

from labs_helpers.bench.machine import prepare_triton

prepare_triton()  # before the first kernel is decorated: it decides between interpreter and compiler

from labs_helpers.first_kernels.five_operations import five_operations  # noqa: E402
from labs_helpers.first_kernels.programs_needed import programs_needed  # noqa: E402
from labs_helpers.first_kernels.row_sum import row_sum  # noqa: E402
from labs_helpers.first_kernels.transpose_copy import transpose_copy  # noqa: E402
from labs_helpers.first_kernels.vector_add import vector_add  # noqa: E402

__all__ = ["five_operations", "programs_needed", "row_sum", "transpose_copy", "vector_add"]
