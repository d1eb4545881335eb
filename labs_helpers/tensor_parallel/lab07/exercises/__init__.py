"""The exercises of lab 07, one file each: stub, answer and reference in one."""

from labs_helpers.course.retired import retired_in
from labs_helpers.tensor_parallel.lab07.exercises.ex1_trace_shapes import trace_shapes
from labs_helpers.tensor_parallel.lab07.exercises.ex2_get_info import get_info
from labs_helpers.tensor_parallel.lab07.exercises.ex3_split_data import split_data
from labs_helpers.tensor_parallel.lab07.exercises.ex4_naive_collect_forward_input import naive_collect_forward_input
from labs_helpers.tensor_parallel.lab07.exercises.ex6_naive_collect_backward_x import naive_collect_backward_x
from labs_helpers.tensor_parallel.lab07.exercises.ex7_column_parallel_linear import column_parallel_linear
from labs_helpers.tensor_parallel.lab07.exercises.ex8_row_parallel_linear import row_parallel_linear
from labs_helpers.tensor_parallel.lab07.exercises.ex9_average_gradients import average_gradients
from labs_helpers.tensor_parallel.lab07.exercises.ex11_conjugate_operators import conjugate_operators
from labs_helpers.tensor_parallel.lab07.exercises.ex12_communication_share import communication_share

__all__ = [
    "average_gradients",
    "column_parallel_linear",
    "communication_share",
    "conjugate_operators",
    "get_info",
    "naive_collect_backward_x",
    "naive_collect_forward_input",
    "row_parallel_linear",
    "split_data",
    "trace_shapes",
]
__getattr__ = retired_in("07")
