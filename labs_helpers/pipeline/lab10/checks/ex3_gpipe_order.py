"""Check exercise 3 of lab 10: all forward passes, then all backward passes."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.pure_functions import judge
from labs_helpers.pipeline.lab10 import exercises
from labs_helpers.pipeline.lab10.checks import order_mistakes
from labs_helpers.pipeline.lab10.checks.orders import case, orders_of, told

SIZES = ((2, 2), (2, 3), (3, 5), (4, 2), (1, 3), (3, 1))  # ranks, micro-batches
ADVICE = "write down rank 0's list for two micro-batches"


@exercise("10/3", "GPipe's order", points=5, minutes=5, reference=exercises.gpipe_order)
def gpipe_order(student):
    cases = [case(order_mistakes.gpipe, *sizes) for sizes in SIZES]
    mistakes = [(said, on_all_ranks(order)) for said, order in order_mistakes.OF_GPIPE]
    yield from judge(student, lambda *given: orders_of(student, *given), cases, mistakes, told=told, advice=ADVICE)


def on_all_ranks(order):
    """Return a function that lists the orders of all ranks."""
    return lambda ranks, micro_batches: [order(rank, ranks, micro_batches) for rank in range(ranks)]
