"""A captured pipeline computes what the eager one does, also with other data and after its gradients were dropped."""

import pytest
import torch
from hypothesis import given, settings
from torch import nn
from torch.nn.functional import mse_loss

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.pipeline.executor import Pipeline
from labs_helpers.pipeline.graphs import WARM_UP, GraphedPipeline
from labs_helpers.pipeline.measured import Recorder
from labs_helpers.pipeline.schedules import forward_only, interleaved, one_f_one_b, zero_bubble
from labs_helpers.pipeline.split_backward import leave_weights_for_later
from labs_helpers.practice.groups import practice_groups
from tests.pipeline.random_schedules import random_schedules
from tests.pipeline.recorded_ops import RecordedOps
from tests.pipeline.test_executor import ROWS, WIDTH, layers

RUNS = WARM_UP + 3


def batch(seed: int, micro_batches: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    both = torch.randn(2, micro_batches, ROWS, WIDTH, generator=generator, dtype=torch.float64)
    return list(both[0]), list(both[1])


def on_rank(comm, schedule, fused):
    """Return what both pipelines find in RUNS steps with different data, and what the last of them did."""
    group = PracticeCommunication(comm)
    found = []
    for kind, more in ((Pipeline, {}), (GraphedPipeline, {"graphs": RecordedOps})):
        every = layers(schedule.stages)
        mine = nn.ModuleDict({str(stage): every[stage] for stage in schedule.held_by(group.rank)})
        later = leave_weights_for_later(mine) if fused else None
        stages = {int(stage): module for stage, module in mine.items()}
        pipeline = kind(schedule, stages, mse_loss, group, (ROWS, WIDTH), torch.float64, later, **more)
        steps = []
        for seed in range(RUNS):
            mine.zero_grad(set_to_none=True)
            with Recorder(pipeline) as recorder:
                losses = pipeline.run(*batch(seed, schedule.micro_batches))
            steps.append((losses, [p.grad.clone() for p in mine.parameters()], [bar.action for bar in recorder.bars()]))
        found.append(steps)
    return found


def agrees(schedule, fused):
    for eager, graphed in practice_groups(on_rank, schedule.ranks, schedule, fused).results:
        assert len(eager) == len(graphed) == RUNS
        for (losses, gradients, actions), (same_losses, same_gradients, same_actions) in zip(
            eager, graphed, strict=True
        ):
            torch.testing.assert_close(same_losses, losses, rtol=0, atol=0)
            torch.testing.assert_close(same_gradients, gradients, rtol=0, atol=0)
            assert same_actions == actions


@settings(max_examples=15, deadline=None)
@given(random_schedules(max_micro_batches=4))
def test_a_random_schedule(schedule):
    agrees(schedule, fused=schedule.splits_backward)


@pytest.mark.parametrize("make", [one_f_one_b, interleaved, zero_bubble])
def test_a_published_schedule(make):
    agrees(make(2, 4), fused=True)


def test_what_does_not_fit_is_refused():
    stage, group = layers(1)[0], SilentCommunication(0, 1)
    with pytest.raises(ValueError, match="forward only has no backward passes, so it cannot be captured"):
        GraphedPipeline(forward_only(1, 2), {0: stage}, mse_loss, group, (ROWS, WIDTH), torch.float64)
    pipeline = GraphedPipeline(
        one_f_one_b(1, 2), {0: stage}, mse_loss, group, (ROWS, WIDTH), torch.float64, graphs=RecordedOps
    )
    for _ in range(RUNS):
        pipeline.run(*batch(0, 2))
    inputs, targets = batch(0, 2)
    with pytest.raises(ValueError, match=r"inputs of \(1, 3\) in torch.float64; captured were \(2, 3\)"):
        pipeline.run([x[:1] for x in inputs], targets)
    with pytest.raises(ValueError, match="1 inputs; the schedule has 2 micro-batches"):
        pipeline.run(inputs[:1], targets)
