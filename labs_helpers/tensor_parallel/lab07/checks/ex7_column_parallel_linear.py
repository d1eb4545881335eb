"""Check exercise 7 of lab 07: a column-parallel layer with one all-reduce in backward and none in forward."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import Case, Cut
from labs_helpers.tensor_parallel.lab07.checks.linear_layers import Scheme, layer_lines

COLUMNS = dict.fromkeys(("out", "grad_weight", "grad_bias"), "it belongs to this rank's own columns")
SCHEME = Scheme(
    Cut(weight=1, bias=0, grad_out=-1), COLUMNS, "a rank holds the whole x, and its columns need nothing else"
)
CASES = (
    Case("3 ranks, 12 features to 15", 3, batch=6, length=7, features=12, width=15),
    Case("2 ranks, a rank's weight is square", 2, batch=3, length=2, features=4, width=8),
    Case("1 rank", 1, batch=2, length=3, features=5, width=4),
    Case("2 groups of 2 ranks, each with its own data", 2, batch=1, length=6, features=5, width=6, groups=2),
    Case("4 ranks, transposed and sliced tensors", 4, 3, 5, features=7, width=8, whole_numbers=False, strided=True),
    Case("2 layers on 2 ranks, in float64", 2, 2, 3, 4, 10, layers=2, dtype=torch.float64, whole_numbers=False),
)


@exercise("07/7", "column-parallel", points=15, minutes=20, reference=exercises.column_parallel_linear)
def column_parallel_linear(student):
    yield from layer_lines(student, SCHEME, CASES)
