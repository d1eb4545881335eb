"""The mistakes that checks of lab 07 hold as functions of the exercise's arguments, each planted as an answer."""

from labs_helpers.tensor_parallel.lab07 import checks as check
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks import shape_mistakes
from tests.planted import PlantedLists


def in_layer(layer):
    def answer(row):
        return lambda *sizes: exercises.trace_shapes(*sizes) | {layer: row(*sizes)}

    return answer


class TestLab07(PlantedLists):
    LISTS = tuple(
        (check.trace_shapes, shape_mistakes.mistakes(layer), in_layer(layer))
        for layer in ("fc_q", "fc_o", "fc_o, naive")
    )
