"""Check exercise 4 of lab 10: each rank's order in 1F1B, and a step of training in this order."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.pure_functions import judge
from labs_helpers.pipeline.lab10 import exercises
from labs_helpers.pipeline.lab10.checks import order_mistakes
from labs_helpers.pipeline.lab10.checks.ex3_gpipe_order import on_all_ranks
from labs_helpers.pipeline.lab10.checks.orders import case, orders_of, told
from labs_helpers.pipeline.lab10.checks.trained import expect_gradients
from labs_helpers.pipeline.lab10.own_schedule import as_schedule

SIZES = ((2, 2), (2, 5), (3, 3), (4, 8), (3, 5), (4, 2), (5, 3), (1, 3), (4, 4))  # ranks, micro-batches
ADVICE = "write down rank 0's and the last rank's list for three ranks and four micro-batches"


@exercise("10/4", "1F1B", points=15, minutes=20, reference=exercises.one_f_one_b_order)
def one_f_one_b_order(student):
    cases = [case(order_mistakes.one_f_one_b, *sizes) for sizes in SIZES]
    mistakes = [(said, on_all_ranks(order)) for said, order in order_mistakes.OF_1F1B]
    yield from judge(student, lambda *given: orders_of(student, *given), cases, mistakes, told=told, advice=ADVICE)
    yield expect_gradients(as_schedule(orders_of(student, 3, 4), 3, 4))
