"""Check exercise 6 of lab 07: each rank's slice of the summed gradient, and its cost."""

from functools import partial

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.activation_cases import Asked, Case
from labs_helpers.tensor_parallel.lab07.checks.activation_mistakes import of_slicing, of_summing, sliced, total
from labs_helpers.tensor_parallel.lab07.checks.activations import activation_lines

ASKED = Asked(
    "grad_x",
    partial(sliced, total),
    lambda: (*of_slicing(total), *of_summing()),
    "on paper, take 2 ranks, batch 1, length 2, 4 features: what does send contain, and which half does rank 0 get?",
    "these are the blocks for all ranks or from all ranks; this rank returns one block, the sum of those meant for it",
    cheap=("Reduce_scatter_block", "Reduce_scatter", "Alltoall", "alltoall"),
)
CASES = (
    Case("2 models of 2 ranks", 4, 2),
    Case("3 ranks, float32", 3, 3, dtype=np.float32),
    Case("4 ranks, batch and length 1", 4, 4, (1, 1, 3)),
    Case("2 ranks, int64 beyond 2**53", 2, 2, (2, 3, 4), np.int64),
    Case("3 ranks, grad_x a slice that is not contiguous", 3, 3, dtype=np.float32, order="slice"),
    Case("2 models of 2 ranks, grad_x in Fortran order", 4, 2, order="F"),
    Case("1 rank", 1, 1, dtype=np.int64),
)


@exercise("07/6", "gradient of the input", points=10, minutes=20, reference=exercises.naive_collect_backward_x)
def naive_collect_backward_x(student):
    yield from activation_lines(student, ASKED, CASES)
