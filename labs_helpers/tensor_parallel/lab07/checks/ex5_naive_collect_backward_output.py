"""Exercise 5 of lab 07: each rank's slice of the output's gradient, in memory of its own."""

from functools import partial

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.arrays import Results
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import on_ranks
from labs_helpers.tensor_parallel.lab07.checks.slice_causes import ERRORS, MUST, SENT, VIEW, causes
from labs_helpers.tensor_parallel.lab07.checks.slices import SHAPE, laid_out, models, slices

ADVICE = "8 features on 2 ranks: which are rank 0's, which rank 1's? And 12 features on 3?"
SEVERAL = "np.split cuts all parts; this rank's is the one at mp_group_idx"
FIRST = (6, 9, 5)  # of a part: halves of the axes and the part differ, and none is 2 or 1
RETURN = "the result is not returned"


@exercise("07/5", "gradient of the output", points=10, minutes=10, reference=exercises.naive_collect_backward_output)
def naive_collect_backward_output(student):
    right = Results(student, "output_grad", ADVICE, SEVERAL, RETURN)
    for case, count, mp_size, shape, dtype, order in (
        ("2 models of 2 ranks", 2, 2, FIRST, np.float64, "C"),
        ("3 ranks, float32", 1, 3, SHAPE, np.float32, "C"),
        ("4 ranks, int64", 1, 4, (3, 2, 5), np.int64, "C"),
        ("2 ranks, batch and length 1", 1, 2, (1, 1, 4), np.float32, "C"),
        ("2 models of 3 ranks, float16, length before batch in memory", 2, 3, (3, 2, 4), np.float16, "length first"),
        ("2 ranks, output_grad itself a slice", 1, 2, SHAPE, np.float32, "slice"),
        ("1 rank", 1, 1, SHAPE, np.float64, "C"),
    ):
        wholes = models(count, mp_size, shape, dtype)
        own = [(laid_out(whole, order), rank, mp_size) for whole in wholes for rank in range(mp_size)]
        run = on_ranks(case, student, _call, own, errors=ERRORS, kept=("output_grad",))
        found, shared = zip(*run.results, strict=True)
        expected = slices(wholes, mp_size)
        given = {f"model {model}": whole for model, whole in enumerate(wholes)}
        right.compare_values(case, found, expected, partial(causes, wholes, mp_size), given)
        for rank, is_shared in enumerate(shared):
            if is_shared:
                cause = MUST if mp_size == 1 or shape[:2] == (1, 1) else VIEW
                raise Wrong(case, f"rank {rank}'s result shares memory with output_grad", cause=cause)
        right.compare_form(case, found, expected)
        if run.calls:
            raise Wrong(case, f"the values are right, but {run.calls[0].name} is called", cause=SENT)
        yield f"{case}: {' × '.join(map(str, wholes[0].shape))} → {' × '.join(map(str, shape))}"


def _call(student, comm, output_grad, mp_group_idx, mp_size):
    found = student(output_grad, mp_group_idx, mp_size)
    return found, isinstance(found, np.ndarray) and np.may_share_memory(found, output_grad)
