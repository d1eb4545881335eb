"""Pipelines compute what one process computes, under every schedule, also random ones."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from torch import nn
from torch.nn.functional import mse_loss

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.pipeline.executor import Pipeline
from labs_helpers.pipeline.measured import Recorder
from labs_helpers.pipeline.schedules import forward_only, gpipe, interleaved, one_f_one_b, zero_bubble
from labs_helpers.pipeline.split_backward import leave_weights_for_later
from labs_helpers.practice.groups import practice_groups
from tests.pipeline.random_schedules import random_schedules

WIDTH, ROWS = 3, 2


def layers(stages: int) -> list[nn.Module]:
    generator = torch.Generator().manual_seed(0)
    made = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()).double() for _ in range(stages)]
    for parameter in nn.ModuleList(made).parameters():
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return made


def batch(micro_batches: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    both = torch.randn(2, micro_batches, ROWS, WIDTH, generator=generator, dtype=torch.float64)
    return list(both[0]), list(both[1])


def on_one_process(stages: int, micro_batches: int) -> tuple[list[float], list[torch.Tensor]]:
    model = nn.Sequential(*layers(stages))
    losses = [mse_loss(model(x), y) for x, y in zip(*batch(micro_batches), strict=True)]
    torch.stack(losses).mean().backward()
    return [loss.item() for loss in losses], [p.grad for p in model.parameters()]


def on_rank(comm, schedule, fused: bool, recorded: bool = False):
    group = PracticeCommunication(comm)
    every = layers(schedule.stages)
    mine = {stage: every[stage] for stage in schedule.held_by(group.rank)}
    later = leave_weights_for_later(nn.ModuleList(mine.values())) if fused else None
    pipeline = Pipeline(schedule, mine, mse_loss, group, (ROWS, WIDTH), torch.float64, later)
    with Recorder(pipeline) as recorder:
        losses = pipeline.run(*batch(schedule.micro_batches))
    left = [pipeline.x, pipeline.y, pipeline.dx, pipeline.kept, pipeline.arriving, pipeline.leaving]
    gradients = {stage: [p.grad for p in module.parameters()] for stage, module in mine.items()}
    return [loss.item() for loss in losses], gradients, left, [bar.action for bar in recorder.bars()]


def agrees(schedule, fused: bool) -> None:
    run = practice_groups(on_rank, schedule.ranks, schedule, fused)
    losses, gradients = on_one_process(schedule.stages, schedule.micro_batches)
    found: dict[int, list[torch.Tensor]] = {}
    for rank, (of_rank, mine, left, actions) in enumerate(run.results):
        assert of_rank == (pytest.approx(losses) if schedule.rank_of[-1] == rank else [])
        assert not any(left), "a rank keeps nothing of a step"
        assert actions == list(schedule.computations().orders[rank])
        found |= mine
    flat = [gradient for stage in range(schedule.stages) for gradient in found[stage]]
    for one, other in zip(flat, gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(random_schedules(max_micro_batches=4))
def test_a_random_schedule_computes_the_same_gradients(schedule):
    agrees(schedule, fused=schedule.splits_backward)


@pytest.mark.parametrize("fused", [False, True], ids=["autograd", "in place"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_published_schedule_computes_the_same_gradients(ranks, fused):
    for make in (gpipe, one_f_one_b, interleaved):
        agrees(make(ranks, 2 * ranks), fused)
    agrees(zero_bubble(ranks, 2 * ranks), fused=True)


def test_evaluation_builds_no_graph_and_sends_no_gradient():
    def evaluate(comm):
        group = PracticeCommunication(comm)
        stage = layers(2)[group.rank]
        pipeline = Pipeline(forward_only(2, 3), {group.rank: stage}, mse_loss, group, (ROWS, WIDTH), torch.float64)
        losses = pipeline.run(*batch(3))
        assert not any(loss.requires_grad for loss in losses)
        assert all(p.grad is None for p in stage.parameters())
        return [loss.item() for loss in losses], dict(group.calls)

    (none, first), (losses, second) = practice_groups(evaluate, 2).results
    assert none == []
    assert losses == pytest.approx(on_one_process(2, 3)[0])
    assert (first, second) == ({"send": 3}, {})


def test_a_loss_scale_multiplies_the_gradients_and_not_the_losses():
    def scaled(comm):
        group, stage = PracticeCommunication(comm), layers(1)[0]
        pipeline = Pipeline(one_f_one_b(1, 2), {0: stage}, mse_loss, group, (ROWS, WIDTH), torch.float64)
        return pipeline.run(*batch(2), scale=8.0), [p.grad for p in stage.parameters()]

    ((losses, found),) = practice_groups(scaled, 1).results
    expected, gradients = on_one_process(1, 2)
    assert [loss.item() for loss in losses] == pytest.approx(expected)
    for one, other in zip(found, gradients, strict=True):
        torch.testing.assert_close(one, 8 * other)


def test_what_does_not_fit_is_refused():
    stage, group = layers(1)[0], SilentCommunication(0, 2)
    with pytest.raises(ValueError, match="the schedule is for 3 ranks, and the group has 2"):
        Pipeline(gpipe(3, 2), {0: stage}, mse_loss, group, (ROWS, WIDTH))
    with pytest.raises(ValueError, match=r"rank 0 holds the stages \[0\], but was given \[1\]"):
        Pipeline(gpipe(2, 2), {1: stage}, mse_loss, group, (ROWS, WIDTH))
    with pytest.raises(ValueError, match="ZB-H1 splits backward passes: pass later="):
        Pipeline(zero_bubble(2, 2), {0: stage}, mse_loss, group, (ROWS, WIDTH))
    pipeline = Pipeline(gpipe(2, 2), {0: stage}, mse_loss, group, (ROWS, WIDTH))
    with pytest.raises(ValueError, match="3 inputs; the schedule has 2 micro-batches"):
        pipeline.run(batch(3)[0])
    with pytest.raises(ValueError, match="no inputs; the schedule has 2 micro-batches"):
        pipeline.run()
