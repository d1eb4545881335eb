"""Exercise 5 of lab 07: each rank's slice of the output's gradient, in memory of its own."""

from functools import partial

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.activation_cases import Asked, Case
from labs_helpers.tensor_parallel.lab07.checks.activation_mistakes import given, of_slicing, sliced
from labs_helpers.tensor_parallel.lab07.checks.activations import activation_lines

ASKED = Asked(
    "output_grad",
    partial(sliced, given),
    partial(of_slicing, given),
    "8 features on 2 ranks: which are rank 0's, which rank 1's? And 12 features on 3?",
    "np.split cuts all parts; this rank's is the one at mp_group_idx",
    alike=True,
    errors=(
        (r"^NameError: name 'mp_comm'", "every rank has the whole gradient already, so nothing has to be sent"),
        (r"^NameError: name '(mp_idx|rank)'", "the rank's place in its model is mp_group_idx here"),
        (r"^IndexError: too many indices", "a slice for each axis: output_grad has three"),
    ),
    nothing="the result is not returned",
)
CASES = (
    Case("2 models of 2 ranks", 4, 2, (6, 9, 5)),  # halves of the axes and the part differ, and none is 2 or 1
    Case("3 ranks, float32", 3, 3, dtype=np.float32),
    Case("4 ranks, int64", 4, 4, (3, 2, 5), np.int64),
    Case("2 ranks, batch and length 1", 2, 2, (1, 1, 4), np.float32),
    Case("2 models of 3 ranks, float16, length before batch in memory", 6, 3, (3, 2, 4), np.float16, "length first"),
    Case("2 ranks, output_grad itself a slice", 2, 2, dtype=np.float32, order="slice"),
    Case("1 rank", 1, 1),
)


@exercise("07/5", "gradient of the output", points=10, minutes=10, reference=exercises.naive_collect_backward_output)
def naive_collect_backward_output(student):
    yield from activation_lines(student, ASKED, CASES)
