"""Test gradients averaged in buckets: they are the mean over all ranks for any order, implementation and number of
passes."""

import functools

import pytest
import torch
from torch import nn

from labs_helpers.communication.buckets import fill_buckets
from tests.tensor_parallel import gradient_cases
from tests.tensor_parallel import ranks as on_ranks

SETTINGS = [(way, overlap) for way in on_ranks.WAYS for overlap in (True, False)]
CASES = {setting: functools.partial(gradient_cases.mean_gradients, *setting) for setting in SETTINGS}
CASES |= {"accumulated": gradient_cases.accumulated}


@pytest.mark.parametrize("way, overlap", SETTINGS)
def test_the_mean_of_all_ranks_tied_weights_once(results, way, overlap):
    for of_rank in results:
        found = of_rank[way, overlap]
        assert found["error"] < 1e-15 and found["in buckets"]
        buckets = len(found["sizes"])
        assert buckets >= 3 and max(found["sizes"]) <= 700
        assert found["calls"] == {"all_reduce": buckets}
        assert found["payload"] == sum(found["sizes"]) == (4 * 36 + 5 * 6) * 8  # four weights, five biases
        assert found["started in backward"] == (buckets if overlap else 0)
        assert (found["started early"] > 0) == overlap


def test_accumulation_layers_that_one_rank_uses_and_refusals(results):
    for of_rank in results:
        error, calls, unused, messages, still_listening = of_rank["accumulated"]
        assert error < 1e-15 and calls == 0 and unused < 1e-15 and not still_listening
        assert messages[0].startswith("no gradient has arrived") and messages[1].startswith("a gradient arrived twice")


def test_buckets_hold_one_dtype_and_what_is_larger_alone():
    parameters = [nn.Parameter(torch.zeros(n)) for n in (10, 10, 100, 10)]
    parameters.append(nn.Parameter(torch.zeros(1, dtype=torch.float64)))
    filled = fill_buckets(parameters, 80)
    assert [[p.numel() for p in bucket] for bucket in filled] == [[10, 10], [100], [10], [1]]
