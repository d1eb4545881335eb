"""How a check says right or wrong: what it compares, which causes it tries, and the words it uses."""

from labs_helpers.course.verdict.causes import Candidates, likely
from labs_helpers.course.verdict.compare import expect_close, expect_equal, expect_number, matmul_bound
from labs_helpers.course.verdict.compiled import check_compiles, check_tensor_cores, compiled_for
from labs_helpers.course.verdict.errors import describe_error
from labs_helpers.course.verdict.inputs import numbers, with_unit_stride
from labs_helpers.course.verdict.kernel_trial import Run, run_watched
from labs_helpers.course.verdict.messages import cause_of
from labs_helpers.course.verdict.returned import expect_tuple
from labs_helpers.course.verdict.surroundings import surrounded
from labs_helpers.course.verdict.trials import Truth, expect_dtype, expect_fused, kernel_cases
from labs_helpers.course.verdict.wrong import Wrong

__all__ = [
    "Candidates",
    "Run",
    "Truth",
    "Wrong",
    "cause_of",
    "check_compiles",
    "check_tensor_cores",
    "compiled_for",
    "describe_error",
    "expect_close",
    "expect_dtype",
    "expect_equal",
    "expect_fused",
    "expect_number",
    "expect_tuple",
    "kernel_cases",
    "likely",
    "matmul_bound",
    "numbers",
    "run_watched",
    "surrounded",
    "with_unit_stride",
]
