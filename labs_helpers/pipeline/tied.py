"""A weight that the first and the last stage share: the embedding, which is also the output's matrix.

On one rank, both stages use one parameter. On two ranks, each has a copy (Narayanan et al., Efficient Large-Scale
Language Model Training on GPU Clusters Using Megatron-LM, 2021). Both ranks exchange their gradients and add them. The
sum of two numbers has the same bits in either order, so equal optimizers keep the copies equal.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from labs_helpers.communication.interface import Communication
from labs_helpers.pipeline.schedule import Schedule
from labs_helpers.pipeline.stages import TransformerStage


def share_tied_weight(stages: Mapping[int, TransformerStage]) -> None:
    """Make a rank's last stage use the weight of its first stage, if the output is tied and the rank holds both."""
    first = next((stage for stage in stages.values() if stage.first), None)
    last = next((stage for stage in stages.values() if stage.last), None)
    if first is not None and last is not None and last.model.output is None:
        last.model.embedding = first.model.embedding


def sum_tied_gradients(gradient: Tensor, schedule: Schedule, group: Communication) -> None:
    """Replace the gradient of a tied weight by the sum of both stages' gradients, in place.

    gradient: contiguous, of one shape on the ranks of the first and the last stage, which both call this; other ranks
    do not. If one rank holds both stages, the gradient is already the sum.
    """
    first, last = schedule.rank_of[0], schedule.rank_of[-1]
    if first == last:
        return
    other = torch.empty_like(gradient)
    if group.rank == first:  # over NCCL, one of the two has to send first, and the other to receive
        group.send(gradient, last)
        group.receive(other, last)
    else:
        group.receive(other, first)
        group.send(gradient, first)
    gradient.add_(other)
