"""Plant each mistake that the checks of lab 12 list, as an answer."""

from functools import partial

from labs_helpers.quantization.lab12 import checks as check
from labs_helpers.quantization.lab12 import exercises
from labs_helpers.quantization.lab12.checks import (
    awq_mistakes,
    int4_mistakes,
    int8_mistakes,
    smooth_mistakes,
    speed_up_mistakes,
    w8a8_mistakes,
)
from tests.planted import PlantedLists, by_number

SHAPE = 1, 8, 8, 4, 4, 1e9, 1e12


def as_answer(mistake):
    return lambda *arguments: mistake(*arguments)


def with_part(number, mistake):
    def answer(*arguments):
        right = list(exercises.speed_up(*arguments))
        right[number] = mistake(*arguments)
        return tuple(right)

    return answer


class TestLab12(PlantedLists):
    LISTS = (
        (check.quantize_int8, int8_mistakes.MISTAKES, as_answer),
        (check.int4_bytes, int4_mistakes.MISTAKES, as_answer),
        (check.speed_up, by_number(speed_up_mistakes.speed_ups, *SHAPE), partial(with_part, 0)),
        (check.speed_up, by_number(speed_up_mistakes.crossovers, *SHAPE), partial(with_part, 1)),
        (check.smooth, smooth_mistakes.MISTAKES, as_answer),
        (check.awq_search, awq_mistakes.MISTAKES, as_answer),
        (check.int8_matmul, w8a8_mistakes.MISTAKES, as_answer),
    )
