"""Exercise 3 of lab 05: dK and dV, where a program owns a tile of keys and loops over the queries."""

from labs_helpers.attention.lab05 import exercises
from labs_helpers.attention.lab05.checks.gradients import kernel_trial
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import check_tensor_cores


@exercise("05/3", "dK and dV", points=25, minutes=25, reference=exercises.key_value_gradients, kernel=True)
def key_value_gradients(student):
    run = yield from kernel_trial(
        student,
        ["dk", "dv"],
        once=("k", "v"),
        walked=("q", "do", "lse", "delta"),
        most=lambda e: e.walked(e.corner)[:, :: e.BLOCK_N].sum(1),
        surplus="query tiles before the diagonal are computed, although they are masked completely",
    )
    yield "every element of dK and dV has one writer; a program starts at the diagonal"
    yield check_tensor_cores(run.launches[-1])
