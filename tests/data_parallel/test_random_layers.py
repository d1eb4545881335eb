"""Ranks that call different layers in different orders get the same weights as one process."""

from functools import partial

import pytest

from tests import real_ranks
from tests.data_parallel import random_layer_cases
from tests.data_parallel.random_layer_cases import CONFIGURATIONS, RANKS
from tests.tensor_parallel import ranks as on_ranks


def worst_errors(seeds):
    """Return the largest error on any rank, by configuration and seed."""
    cases = {
        (number, seed): partial(random_layer_cases.trained, *configuration, seed)
        for number, configuration in enumerate(CONFIGURATIONS)
        for seed in seeds(number)
    }
    by_rank = real_ranks.run(on_ranks.run_cases, RANKS, cases, timeout=300 + len(cases))
    for of_rank in by_rank:
        for (number, seed), error in of_rank.items():
            assert not isinstance(error, str), (CONFIGURATIONS[number], seed, error)
    return {case: max(of_rank[case] for of_rank in by_rank) for case in cases}


def check(errors):
    wrong = [(CONFIGURATIONS[number], seed, error) for (number, seed), error in errors.items() if error > 1e-12]
    assert not wrong


def test_every_wrapper_stage_and_option():
    check(worst_errors(lambda number: [number]))


@pytest.mark.soak
def test_every_wrapper_stage_and_option_with_many_choices():
    check(worst_errors(lambda number: range(1000, 1020)))
