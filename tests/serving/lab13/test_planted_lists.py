"""Plant each mistake that the checks of lab 13 list, as an answer."""

from functools import partial

from labs_helpers.serving.lab13 import checks as check
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks import (
    accept_mistakes,
    block_mistakes,
    cached_mistakes,
    chunk_mistakes,
    cost_mistakes,
    fit_mistakes,
    paged_mistakes,
    speculation_mistakes,
    step_mistakes,
    text_mistakes,
    tree_mistakes,
)
from labs_helpers.transformer.config import SIZES
from tests.planted import PlantedLists, by_number

TINY = SIZES["tiny"]


def as_answer(mistake):
    return lambda *arguments: mistake(*arguments)


def with_part(reference, number, mistake):
    def answer(*arguments):
        right = list(reference(*arguments))
        right[number] = mistake(*arguments)
        return tuple(right)

    return answer


def parts(check_, reference, given, *lists):
    return [
        (check_, by_number(mistakes, *given), partial(with_part, reference, number))
        for number, mistakes in enumerate(lists)
    ]


def of_blocks(manager):
    return lambda count, size: manager(count, size)


def raising(mistake):
    def answer(*arguments):
        if (found := mistake(*arguments)) == "ValueError":
            raise ValueError("no progress")
        return found

    return answer


class TestLab13(PlantedLists):
    LISTS = (
        *parts(check.step_cost, exercises.step_cost, (TINY, 9, 2, 3, 4), cost_mistakes.flops, cost_mistakes.bytes_),
        *parts(
            check.users_that_fit, exercises.users_that_fit, (TINY, 9, 10**9, 30, 16),
            fit_mistakes.per_position, fit_mistakes.reserved, fit_mistakes.paged,
        ),
        (check.attend_cached, cached_mistakes.MISTAKES, as_answer),
        (check.paged_attention, paged_mistakes.MISTAKES, as_answer),
        (check.chunked_passes, chunk_mistakes.MISTAKES, raising),
        (check.verify, accept_mistakes.MISTAKES, as_answer),
        (check.block_tables, block_mistakes.MISTAKES, of_blocks),
        (check.next_step, step_mistakes.MISTAKES, as_answer),
        (check.stream_text, text_mistakes.MISTAKES, as_answer),
        (check.best_speculation, speculation_mistakes.MISTAKES, as_answer),
        (check.conversation_tree, tree_mistakes.MISTAKES, as_answer),
    )  # fmt: skip
