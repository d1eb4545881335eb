"""Plant each mistake that the checks of exercises 6 and 8 of lab 10 name, as an answer."""

from labs_helpers.pipeline.lab10 import checks as check
from labs_helpers.pipeline.lab10.checks import group_mistakes, interleaved_mistakes
from tests.planted import PlantedLists


def of_order(order):
    return lambda rank, ranks, micro_batches, chunks: order(rank, ranks, micro_batches, chunks)


def of_mesh(groups):
    return lambda sizes, exposed: groups(sizes, exposed)


class TestLab10(PlantedLists):
    LISTS = (
        (check.interleaved_order, interleaved_mistakes.MISTAKES, of_order),
        (check.rank_groups, group_mistakes.MISTAKES, of_mesh),
    )
