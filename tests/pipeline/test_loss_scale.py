"""Test that all ranks of a pipeline skip a step if a gradient overflows on one of them."""

import torch
from torch import nn

from labs_helpers.communication.mesh import Mesh
from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.pipeline import Pipeline
from labs_helpers.pipeline.loss_scale import LossScale
from labs_helpers.pipeline.schedules import one_f_one_b
from labs_helpers.practice.groups import practice_groups

MICRO_BATCHES = 4


def train(comm, factor, steps, last_weight=0.5):
    """[(whether the step counts, the next factor, this rank's gradient)] of two linear layers in float16.

    Each gradient is the mean over 8 results of 2 · the layer's input, 0.25 or 0.5, · the weights that follow.
    """
    mesh = Mesh(PracticeCommunication(comm), {"dp": 2, "pp": 2})
    group = mesh["pp"]
    layer = nn.Linear(4, 4, bias=False, dtype=torch.float16)
    nn.init.constant_(layer.weight, last_weight if group.rank else 0.5)
    pipeline = Pipeline(
        one_f_one_b(2, MICRO_BATCHES), {group.rank: layer}, lambda y, target: (y - target).mean(), group, (2, 4),
        torch.float16,
    )  # fmt: skip
    scale, found = LossScale(factor, growth_interval=2), []
    inputs = [torch.full((2, 4), 0.25, dtype=torch.float16)] * MICRO_BATCHES
    for _ in range(steps):
        layer.weight.grad = None
        pipeline.run(inputs, [torch.zeros(2, 4, dtype=torch.float16)] * MICRO_BATCHES, scale=scale.factor)
        counts = scale.unscale([layer.weight.grad], mesh.values())
        found.append((counts, scale.factor, layer.weight.grad.clone()))
    return found


def test_gradients_come_back_to_their_size_and_the_factor_grows():
    for rank in practice_groups(train, 4, 64.0, 4).results:
        assert [counts for counts, _, _ in rank] == [True] * 4
        assert [factor for _, factor, _ in rank] == [64, 128, 128, 256]
        assert all((gradient == 0.125).all() for _, _, gradient in rank)  # in both stages


def test_an_overflow_in_one_stage_skips_the_step_on_all_ranks():
    """Behind the first layer, 4 weights of 64 make its gradient 256 times as large, more than 65,504."""
    by_rank = practice_groups(train, 4, 2.0**12, 1, 64.0).results
    finite = [bool(gradient.isfinite().all()) for ((_, _, gradient),) in by_rank]
    assert finite == [False, True, False, True]
    assert [(counts, after) for ((counts, after, _),) in by_rank] == [(False, 2.0**11)] * 4


def test_one_rank_with_a_nan_is_enough():
    def on_rank(comm):
        mesh, scale = Mesh(PracticeCommunication(comm), {"dp": 2, "pp": 2, "tp": 2}), LossScale(8.0, growth_interval=5)
        gradient = torch.full((3,), float("nan") if comm.rank == 5 else 16.0)
        counts = [scale.unscale([gradient], mesh.values()), scale.unscale([], mesh.values())]
        return counts, scale.factor, scale.good_steps

    assert practice_groups(on_rank, 8).results == [([False, True], 4.0, 1)] * 8
