"""Decide whether an answer is right and explain a wrong one: comparisons, likely causes and error messages."""

from labs_helpers.course.verdict.causes import Candidates, likely
from labs_helpers.course.verdict.compare import expect_close, expect_number, matmul_bound
from labs_helpers.course.verdict.compiled import check_compiles, check_tensor_cores, compiled_for
from labs_helpers.course.verdict.errors import describe_error
from labs_helpers.course.verdict.in_all import likely_in_all
from labs_helpers.course.verdict.inputs import numbers, with_unit_stride
from labs_helpers.course.verdict.kernel_trial import Run, run_watched
from labs_helpers.course.verdict.number import expect_is_number, is_number
from labs_helpers.course.verdict.practice_ranks import on_practice_ranks
from labs_helpers.course.verdict.real_ranks import on_real_ranks
from labs_helpers.course.verdict.returned import expect_list, expect_tuple, numbers_of
from labs_helpers.course.verdict.surroundings import surrounded
from labs_helpers.course.verdict.tables import expect_table
from labs_helpers.course.verdict.threads import one_thread
from labs_helpers.course.verdict.trials import Truth, expect_dtype, expect_fused, kernel_cases
from labs_helpers.course.verdict.unchanged import expect_unchanged
from labs_helpers.course.verdict.wrong import Wrong

__all__ = [
    "Candidates",
    "Run",
    "Truth",
    "Wrong",
    "check_compiles",
    "check_tensor_cores",
    "compiled_for",
    "describe_error",
    "expect_close",
    "expect_dtype",
    "expect_fused",
    "expect_is_number",
    "expect_list",
    "expect_number",
    "expect_table",
    "expect_tuple",
    "expect_unchanged",
    "is_number",
    "kernel_cases",
    "likely",
    "likely_in_all",
    "matmul_bound",
    "numbers",
    "numbers_of",
    "on_practice_ranks",
    "on_real_ranks",
    "one_thread",
    "run_watched",
    "surrounded",
    "with_unit_stride",
]
