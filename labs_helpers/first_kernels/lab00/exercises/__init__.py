"""The exercises of lab 00, one file each: stub, answer and reference in one."""

from labs_helpers.first_kernels.lab00.exercises.ex0_programs_needed import programs_needed
from labs_helpers.first_kernels.lab00.exercises.ex1_vector_add import vector_add
from labs_helpers.first_kernels.lab00.exercises.ex2_transpose_copy import transpose_copy
from labs_helpers.first_kernels.lab00.exercises.ex3_row_sum import row_sum
from labs_helpers.first_kernels.lab00.exercises.ex4_five_operations import five_operations

__all__ = ["five_operations", "programs_needed", "row_sum", "transpose_copy", "vector_add"]
