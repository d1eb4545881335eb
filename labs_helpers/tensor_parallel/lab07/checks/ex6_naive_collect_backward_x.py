"""Exercise 6 of lab 07: each rank's slice of the summed gradient, and what it costs."""

from functools import partial

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import on_real_ranks
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.arrays import Results
from labs_helpers.tensor_parallel.lab07.checks.cost import expect_one_collective
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import of_world, on_ranks
from labs_helpers.tensor_parallel.lab07.checks.reduce_scatter_causes import COSTLY, ERRORS, causes
from labs_helpers.tensor_parallel.lab07.checks.slices import SHAPE, by_model, grid, in_models, laid_out, models, slices

ADVICE = "2 ranks, batch 1, length 2, 4 features, on paper: what lies in send, and which half of it does rank 0 get?"
SEVERAL = "these are the blocks for all ranks, or of all; this rank's is their sum at its place"
CHEAP = ("Reduce_scatter_block", "Reduce_scatter", "Alltoall", "alltoall")


@exercise("07/6", "gradient of the input", points=15, minutes=20, reference=exercises.naive_collect_backward_x)
def naive_collect_backward_x(student):
    right = Results(student, "grad_x", ADVICE, SEVERAL)
    for case, ranks, mp_size, shape, dtype, order in (
        ("2 models of 2 ranks", 4, 2, SHAPE, np.float64, "C"),
        ("3 ranks, float32", 3, 3, SHAPE, np.float32, "C"),
        ("4 ranks, batch and length 1", 4, 4, (1, 1, 3), np.float64, "C"),
        ("2 ranks, int64 beyond 2**53", 2, 2, (2, 3, 4), np.int64, "C"),
        ("3 ranks, grad_x a slice that is not contiguous", 3, 3, SHAPE, np.float32, "slice"),
        ("2 models of 2 ranks, grad_x in Fortran order", 4, 2, SHAPE, np.float64, "F"),
        ("1 rank", 1, 1, SHAPE, np.int64, "C"),
    ):
        gradients = models(ranks, mp_size, shape, dtype)  # one for each rank
        own = [(laid_out(gradient, order), mp_size) for gradient in gradients]
        run = on_ranks(case, student, in_models, own, errors=ERRORS, kept=("grad_x",))
        fitting = partial(causes, [gradient for gradient, _ in own], mp_size)
        right.compare(case, run.results, _sums(gradients, mp_size), fitting, fortran=order == "F")
        expect_one_collective(case, run, grid(ranks, mp_size), CHEAP, gradients[0].nbytes, COSTLY)
        yield f"{case}: {' × '.join(map(str, gradients[0].shape))} → {' × '.join(map(str, shape))}"
    case = "the same function on 4 real ranks, 2 models"
    gradients = models(4, 2, SHAPE, np.float32)
    found = on_real_ranks(case, student, in_models, [(gradient, 2) for gradient in gradients], cause=of_world(student))
    right.compare(case, found, _sums(gradients, 2), tuple)
    yield case


def _sums(gradients, mp_size):
    """Each rank's slice of its model's sum."""
    sums = [sum(of_model) for of_model in by_model(gradients, mp_size)]
    return slices(sums, mp_size)
