"""The checks of lab 00, one file per exercise; its notebook calls `check.name(name)`."""

from labs_helpers.course.lab_summary import summary
from labs_helpers.first_kernels.lab00.checks.ex0_programs_needed import programs_needed
from labs_helpers.first_kernels.lab00.checks.ex1_vector_add import vector_add
from labs_helpers.first_kernels.lab00.checks.ex2_transpose_copy import transpose_copy
from labs_helpers.first_kernels.lab00.checks.ex3_row_sum import row_sum
from labs_helpers.first_kernels.lab00.checks.ex4_five_operations import five_operations
from labs_helpers.first_kernels.lab00.checks.ex5_rms_norm import rms_norm

__all__ = ["five_operations", "programs_needed", "rms_norm", "row_sum", "summary", "transpose_copy", "vector_add"]
