"""Plant each mistake that lab 07's checks define as a function of the exercise's arguments, as an answer."""

import numpy as np

from labs_helpers.tensor_parallel.lab07 import checks as check
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks import (
    ex12_communication_share,
    grid_mistakes,
    sample_mistakes,
    shape_mistakes,
)
from tests.planted import PlantedLists


def in_layer(layer):
    def answer(row):
        return lambda *sizes: exercises.trace_shapes(*sizes) | {layer: row(*sizes)}

    return answer


def of_indices(mistake):
    def get_info(comm, rank, mp_size, dp_size, *layer):
        return *mistake(rank, mp_size, dp_size), *exercises.get_info(comm, rank, mp_size, dp_size, *layer)[2:]

    return get_info


def of_groups(name):
    def answer(mistake):
        def get_info(comm, rank, mp_size, dp_size, *layer):
            info = list(exercises.get_info(comm, rank, mp_size, dp_size, *layer))
            color, key = mistake(rank, mp_size, dp_size)
            info[2 + (name == "dp_comm")] = comm.Split(color=color, key=key)
            return info

        return get_info

    return answer


def of_parts(is_o):
    def answer(mistake):
        def get_info(comm, rank, mp_size, dp_size, fc_layer, *dims):
            info = exercises.get_info(comm, rank, mp_size, dp_size, fc_layer, *dims)
            return info if (fc_layer == "fc_o") != is_o else (*info[:4], *mistake(mp_size, dp_size, *dims))

        return get_info

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
        (check.get_info, grid_mistakes.INDICES, of_indices),
        *((check.get_info, grid_mistakes.group_mistakes(name), of_groups(name)) for name in grid_mistakes.RIGHT),
        (check.get_info, grid_mistakes.part_mistakes("fc_q"), of_parts(False)),
        (check.get_info, grid_mistakes.part_mistakes("fc_o"), of_parts(True)),
        (check.communication_share, ex12_communication_share.OF_ARGUMENTS, lambda mistake: mistake),
        (check.split_data, sample_mistakes.MISTAKES, of_samples),
    )
