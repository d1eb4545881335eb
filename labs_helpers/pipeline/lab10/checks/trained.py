"""Train a small model on practice ranks in a schedule, and compare its gradients with those of one process."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.course.verdict import Wrong, one_thread
from labs_helpers.pipeline.executor import Pipeline
from labs_helpers.pipeline.schedule import Schedule
from labs_helpers.practice.groups import practice_groups

SHAPE = (2, 3)


def expect_gradients(schedule: Schedule) -> str:
    """Return a line of a check that says so if the gradients agree. Raises Wrong if they do not."""
    generator = torch.Generator().manual_seed(0)
    inputs, targets = ([torch.randn(SHAPE, generator=generator) for _ in range(schedule.micro_batches)] for _ in "xy")
    alone = [_stage(number) for number in range(schedule.stages)]
    for x, target in zip(inputs, targets, strict=True):
        (mse_loss(nn.Sequential(*alone)(x), target) / len(inputs)).backward()
    right = [_gradients(stage) for stage in alone]

    def on_rank(comm) -> dict[int, Tensor]:
        group = PracticeCommunication(comm)
        stages = {number: _stage(number) for number in schedule.held_by(group.rank)}
        Pipeline(schedule, stages, mse_loss, group, SHAPE).run(inputs, targets)
        return {number: _gradients(stage) for number, stage in stages.items()}

    with one_thread():
        run = practice_groups(on_rank, schedule.ranks)
    for rank, found in enumerate(run.results):
        for number, gradients in found.items():
            if not torch.allclose(gradients, right[number], rtol=1e-4, atol=1e-6):
                raise Wrong("a training step", f"rank {rank}'s gradients differ from those of one process")
    return f"a training step on {schedule.ranks} ranks: the gradients of one process"


def _stage(number: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(number)
        return nn.Sequential(nn.Linear(3, 3), nn.Tanh())


def _gradients(stage: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in stage.parameters() if p.grad is not None])
