"""Exercise 4 of lab 07: the whole input on each rank, in order, and what it costs to collect."""

from functools import partial

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import on_real_ranks
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.arrays import Results
from labs_helpers.tensor_parallel.lab07.checks.collect_causes import COSTLY, ERRORS, causes
from labs_helpers.tensor_parallel.lab07.checks.cost import expect_one_collective
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import of_world, on_ranks
from labs_helpers.tensor_parallel.lab07.checks.slices import SHAPE, by_rank, grid, in_models, laid_out, models, slices

ADVICE = "two ranks, batch 1, length 2 and two features each, on paper: what lies in recv, number by number?"
SEVERAL = "the parts are not joined: np.concatenate(parts, axis=…)"
CHEAP = ("Allgather", "allgather", "Alltoall", "alltoall")


@exercise("07/4", "collect the input", points=10, minutes=15, reference=exercises.naive_collect_forward_input)
def naive_collect_forward_input(student):
    right = Results(student, "x", ADVICE, SEVERAL)
    for case, ranks, mp_size, shape, dtype, order in (
        ("2 models of 2 ranks", 4, 2, SHAPE, np.float64, "C"),
        ("3 ranks, float32", 3, 3, SHAPE, np.float32, "C"),
        ("4 ranks, batch 1", 4, 4, (1, 3, 2), np.float64, "C"),
        ("2 ranks, int64 beyond 2**53", 2, 2, (2, 3, 4), np.int64, "C"),
        ("2 models of 2 ranks, float16, length 1", 4, 2, (3, 1, 2), np.float16, "C"),
        ("3 ranks, x a slice that is not contiguous", 3, 3, SHAPE, np.float32, "slice"),
        ("2 ranks, x in Fortran order", 2, 2, SHAPE, np.float64, "F"),
        ("1 rank", 1, 1, SHAPE, np.int64, "C"),
    ):
        wholes = models(ranks // mp_size, mp_size, shape, dtype)
        own = [(laid_out(x, order), mp_size) for x in slices(wholes, mp_size)]
        run = on_ranks(case, student, in_models, own, errors=ERRORS, kept=("x",))
        xs = by_rank(slices(wholes, mp_size))
        expected = [wholes[rank // mp_size] for rank in range(ranks)]
        right.compare(case, run.results, expected, partial(causes, [x for x, _ in own], mp_size), xs, order == "F")
        nbytes = wholes[0].nbytes
        expect_one_collective(case, run, grid(ranks, mp_size), CHEAP, nbytes, COSTLY)
        part, whole = " × ".join(map(str, shape)), " × ".join(map(str, wholes[0].shape))
        yield f"{case}: {part} → {whole}"
    case = "the same function on 4 real ranks, 2 models"
    wholes = models(2, 2, SHAPE, np.float32)
    found = on_real_ranks(case, student, in_models, [(x, 2) for x in slices(wholes, 2)], cause=of_world(student))
    right.compare(case, found, [wholes[0], wholes[0], wholes[1], wholes[1]], tuple, by_rank(slices(wholes, 2)))
    yield case
