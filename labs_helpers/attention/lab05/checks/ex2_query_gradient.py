"""Exercise 2 of lab 05: dQ, where a program owns a tile of queries and loops over the keys."""

from labs_helpers.attention.lab05 import exercises
from labs_helpers.attention.lab05.checks.gradients import kernel_trial
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import check_tensor_cores


@exercise("05/2", "dQ", points=15, minutes=20, reference=exercises.query_gradient, kernel=True)
def query_gradient(student):
    run = yield from kernel_trial(
        student,
        ["dq"],
        once=("q", "do", "lse", "delta"),
        walked=("k", "v"),
        most=lambda e: e.walked(e.corner)[:: e.BLOCK_M].sum(0),
        surplus="key tiles after the diagonal are computed, although they are masked completely",
    )
    yield "a program stops at the diagonal: only the query tiles that see K and V load them"
    yield check_tensor_cores(run.launches[-1])
