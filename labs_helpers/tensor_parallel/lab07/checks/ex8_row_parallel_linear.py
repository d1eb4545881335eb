"""Check exercise 8 of lab 07: a row-parallel layer with one all-reduce in forward and none in backward."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import Case, Cut
from labs_helpers.tensor_parallel.lab07.checks.linear_layers import Scheme, layer_lines

OWN = {
    "grad_x": "it belongs to this rank's own features",
    "grad_weight": "it belongs to this rank's own rows",
    "grad_bias": "each rank holds the whole grad_out, and so computes the whole gradient",
}
NOTHING = "grad_out is whole on every rank, and a rank's rows need nothing else"
SCHEME = Scheme(Cut(x=-1, weight=0), OWN, NOTHING)
CASES = (
    Case("3 ranks, 15 features to 12", 3, batch=6, length=7, features=15, width=12),
    Case("2 ranks, a rank's weight is square", 2, batch=3, length=2, features=8, width=4),
    Case("1 rank", 1, batch=2, length=3, features=5, width=4),
    Case("2 groups of 2 ranks, each with its own data", 2, batch=1, length=6, features=6, width=5, groups=2),
    Case("4 ranks, transposed and sliced tensors", 4, 3, 5, features=8, width=7, whole_numbers=False, strided=True),
    Case("2 layers on 2 ranks, in float64", 2, 2, 3, 10, 4, layers=2, dtype=torch.float64, whole_numbers=False),
)


@exercise("07/8", "row-parallel", points=15, minutes=15, reference=exercises.row_parallel_linear)
def row_parallel_linear(student):
    yield from layer_lines(student, SCHEME, CASES)
