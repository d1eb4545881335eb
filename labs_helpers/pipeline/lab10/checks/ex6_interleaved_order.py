"""Check exercise 6 of lab 10: each rank's order in interleaved 1F1B, and a step of training in this order."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.pure_functions import judge
from labs_helpers.pipeline.lab10 import exercises
from labs_helpers.pipeline.lab10.checks.interleaved_mistakes import ERRORS, MISTAKES, interleaved, on_all_ranks
from labs_helpers.pipeline.lab10.checks.orders import case, orders_of, told
from labs_helpers.pipeline.lab10.checks.trained import expect_gradients
from labs_helpers.pipeline.lab10.own_schedule import as_schedule

SIZES = (  # ranks, micro-batches, chunks
    (2, 4, 2), (2, 2, 2), (3, 6, 2), (4, 8, 2), (4, 4, 3), (2, 6, 4), (1, 3, 2), (3, 9, 3), (4, 12, 2),
)  # fmt: skip
FOR_SIZES = "for 3 ranks, 6 micro-batches and 2 chunks"  # ranks ≠ chunks, so that mixing them up shows


@exercise("10/6", "interleaved 1F1B", points=15, minutes=25, reference=exercises.interleaved_order)
def interleaved_order(student):
    cases = [case(interleaved, *sizes) for sizes in SIZES]
    mistakes = [(said, on_all_ranks(order)) for said, order in MISTAKES]
    yield from judge(
        student,
        lambda *given: orders_of(student, *given),
        cases,
        mistakes,
        told=told,
        errors=ERRORS,
        advice=_advice,
    )
    yield expect_gradients(as_schedule(orders_of(student, 2, 4, 2), 2, 4, 2))


def _advice(case, orders) -> str:
    """Return a tip about the kind of passes whose order is wrong, or else about how the two kinds alternate."""
    for kind, name in (("F", "forward"), ("B", "backward")):
        found, right = ([[entry for entry in order if entry[0] == kind] for order in s] for s in (orders, case.right))
        if found != right:
            return f"write down the twelve {name} passes of rank 0, {FOR_SIZES}"
    return f"count each rank's forward passes before its first backward pass, {FOR_SIZES}"
