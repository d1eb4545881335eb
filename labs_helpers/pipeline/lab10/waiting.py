"""Stages that wait for a fixed time in place of computing, so that two cores can stand in for a GPU per rank.

Ranks that compute share this machine's cores, and a rank that should wait would slow down the others less than on real
hardware. Ranks that sleep share nothing. Their messages are real.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from labs_helpers.communication import torch_distributed
from labs_helpers.pipeline.executor import Pipeline
from labs_helpers.pipeline.measured import measure
from labs_helpers.pipeline.schedule import Schedule
from labs_helpers.pipeline.simulate import Timeline

SHAPE = (8, 64)  # of an activation; its message takes much less time than a stage


class WaitingStage(nn.Module):
    """A stage whose forward pass takes `forward` seconds and whose backward pass takes `backward` seconds."""

    def __init__(self, forward: float, backward: float) -> None:
        super().__init__()
        self.seconds = forward, backward
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = _Wait.apply(x, self.weight, *self.seconds)
        return y


class _Wait(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, forward: float, backward: float) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.seconds = backward
        time.sleep(forward)
        return x * weight

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, weight = ctx.saved_tensors
        time.sleep(ctx.seconds)
        return dy * weight, (dy * x).sum(), None, None


join = partial(torch_distributed.join, on_gpus=False)  # the stages only wait


def measure_waiting(schedule: Schedule, forward: float, backward: float, repeats: int = 3) -> Timeline:
    """Return the measured timeline of a schedule whose stages wait. Every rank calls this.

    forward, backward: seconds of a whole rank per micro-batch; with several stages per rank, each takes its share.
    """
    group = join()
    held = schedule.held_by(group.rank)
    stages = {stage: WaitingStage(forward / len(held), backward / len(held)) for stage in held}
    pipeline = Pipeline(schedule, stages, mse_loss, group, SHAPE)
    batches = [torch.ones(SHAPE) for _ in range(schedule.micro_batches)]
    return measure(pipeline, batches, batches, _gather, repeats)


def _gather(value: Any) -> list[Any]:
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found
