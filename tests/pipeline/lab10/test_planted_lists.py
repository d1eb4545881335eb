"""Plant each mistake that the checks of lab 10 list, as an answer."""

from labs_helpers.pipeline.lab10 import checks as check
from labs_helpers.pipeline.lab10.checks import (
    bubble_mistakes,
    group_mistakes,
    interleaved_mistakes,
    order_mistakes,
    span_mistakes,
    unequal_mistakes,
)
from tests.planted import PlantedLists, by_number


def with_right_stashes(bubble):
    return lambda *given: (bubble(*given), bubble_mistakes.right_stashes(*given))


def with_right_bubble(stashes):
    return lambda *given: (bubble_mistakes.right_bubble(*given), stashes(*given))


def cut(mistake):
    return lambda *given: getattr(made := mistake(*given), "spans", made)


def of_order(order):
    return lambda rank, ranks, micro_batches, chunks: order(rank, ranks, micro_batches, chunks)


def of_mesh(groups):
    return lambda sizes, exposed: groups(sizes, exposed)


def of_stages(orders):
    return lambda times, micro_batches, stashes: orders(times, micro_batches, stashes)


def as_it_is(answer):
    return answer


class TestLab10(PlantedLists):
    LISTS = (
        (check.stage_spans, span_mistakes.MISTAKES, cut),
        (check.gpipe_order, order_mistakes.OF_GPIPE, as_it_is),
        (check.one_f_one_b_order, order_mistakes.OF_1F1B, as_it_is),
        (check.bubble_and_stashes, by_number(bubble_mistakes.bubbles, "GPipe", 4, 8), with_right_stashes),
        (check.bubble_and_stashes, by_number(bubble_mistakes.stashes, "GPipe", 4, 8), with_right_bubble),
        (check.interleaved_order, interleaved_mistakes.MISTAKES, of_order),
        (check.rank_groups, group_mistakes.MISTAKES, of_mesh),
        (check.unequal_order, unequal_mistakes.MISTAKES, of_stages),
    )
