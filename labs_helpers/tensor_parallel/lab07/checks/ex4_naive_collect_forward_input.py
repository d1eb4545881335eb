"""Check exercise 4 of lab 07: the whole input on each rank, in order, and the cost of collecting it."""

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.activation_cases import Asked, Case
from labs_helpers.tensor_parallel.lab07.checks.activation_mistakes import joined, of_collecting
from labs_helpers.tensor_parallel.lab07.checks.activations import activation_lines

ASKED = Asked(
    "x",
    joined,
    of_collecting,
    "on paper, take two ranks, batch 1, length 2 and two features each: what does recv contain, number by number?",
    "the parts are not joined: np.concatenate(parts, axis=…)",
    whole=False,
    cheap=("Allgather", "allgather", "Alltoall", "alltoall"),
)
CASES = (
    Case("2 models of 2 ranks", 4, 2),
    Case("3 ranks, float32", 3, 3, dtype=np.float32),
    Case("4 ranks, batch 1", 4, 4, (1, 3, 2)),
    Case("2 ranks, int64 beyond 2**53", 2, 2, (2, 3, 4), np.int64),
    Case("2 models of 2 ranks, float16, length 1", 4, 2, (3, 1, 2), np.float16),
    Case("3 ranks, x a slice that is not contiguous", 3, 3, dtype=np.float32, order="slice"),
    Case("2 ranks, x in Fortran order", 2, 2, order="F"),
    Case("1 rank", 1, 1, dtype=np.int64),
)


@exercise("07/4", "collect the input", points=10, minutes=15, reference=exercises.naive_collect_forward_input)
def naive_collect_forward_input(student):
    yield from activation_lines(student, ASKED, CASES)
