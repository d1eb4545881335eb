"""The mistakes that checks of lab 07 hold as functions of the exercise's arguments, each planted as an answer."""

import numpy as np

from labs_helpers.tensor_parallel.lab07 import checks as check
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks import sample_mistakes, shape_mistakes
from tests.planted import PlantedLists


def in_layer(layer):
    def answer(row):
        return lambda *sizes: exercises.trace_shapes(*sizes) | {layer: row(*sizes)}

    return answer


def of_samples(mistake):
    def split_data(x, y, mp_size, dp_size, rank):
        mine = np.array(mistake(tuple(range(len(x))), mp_size, dp_size, rank), int)
        return x[mine], y[mine]

    return split_data


class TestLab07(PlantedLists):
    LISTS = (
        *(
            (check.trace_shapes, shape_mistakes.mistakes(layer), in_layer(layer))
            for layer in ("fc_q", "fc_o", "fc_o, naive")
        ),
        (check.split_data, sample_mistakes.MISTAKES, of_samples),
    )
