"""The checks of lab 07, one file per exercise; the notebook calls `check.name(name)`."""

from labs_helpers.course.lab_summary import summary
from labs_helpers.course.retired import retired_in
from labs_helpers.tensor_parallel.lab07.checks.ex1_trace_shapes import trace_shapes
from labs_helpers.tensor_parallel.lab07.checks.ex2_get_info import get_info
from labs_helpers.tensor_parallel.lab07.checks.ex3_split_data import split_data
from labs_helpers.tensor_parallel.lab07.checks.ex4_naive_collect_forward_input import naive_collect_forward_input
from labs_helpers.tensor_parallel.lab07.checks.ex6_naive_collect_backward_x import naive_collect_backward_x
from labs_helpers.tensor_parallel.lab07.checks.ex7_column_parallel_linear import column_parallel_linear
from labs_helpers.tensor_parallel.lab07.checks.ex8_row_parallel_linear import row_parallel_linear
from labs_helpers.tensor_parallel.lab07.checks.ex9_average_gradients import average_gradients
from labs_helpers.tensor_parallel.lab07.checks.ex10_parallel_cross_entropy import parallel_cross_entropy
from labs_helpers.tensor_parallel.lab07.checks.ex11_conjugate_operators import conjugate_operators
from labs_helpers.tensor_parallel.lab07.checks.ex12_communication_share import communication_share

__all__ = [
    "average_gradients",
    "column_parallel_linear",
    "communication_share",
    "conjugate_operators",
    "get_info",
    "naive_collect_backward_x",
    "naive_collect_forward_input",
    "parallel_cross_entropy",
    "row_parallel_linear",
    "split_data",
    "summary",
    "trace_shapes",
]
__getattr__ = retired_in("07")
