"""Hidden inputs of exercises 1 to 5: stages, the naive step, and schedules with one stage per rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.course.verdict import one_thread
from labs_helpers.grading.hidden import hidden, kept, normal
from labs_helpers.grading.hidden.ranks import LIMIT_S, hidden_on_ranks
from labs_helpers.practice.groups import practice_groups

Function = Callable[..., Any]


@hidden("10/1")
def stage_spans(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for count in draw.integers(2, 14, 8):
        costs = [0, *draw.integers(1, 10, int(count)).tolist(), int(draw.integers(3, 25))]
        stages, same = int(draw.integers(1, min(6, len(costs) + 1))), kept(costs)
        spans = [(int(start), int(stop)) for start, stop in function(costs, stages)]
        parts = [part for start, stop in spans for part in range(start, stop)]
        yield [parts, len(spans), all(start < stop for start, stop in spans)]
        yield max(sum(costs[start:stop]) for start, stop in spans)  # several cuts may be equally good
        yield same()


@hidden_on_ranks("10/2")
def naive_step(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for ranks, m in ((1, 3), (2, 1), (3, 4), (4, 2)):
        rows, width = (int(number) for number in draw.integers(2, 6, 2))
        weights = [normal(draw, width, width, dtype=torch.float32) / 2 for _ in range(ranks)]
        inputs, targets = ([normal(draw, rows, width) for _ in range(m)] for _ in "xy")
        yield _step(function, weights, inputs, targets)


def _step(function: Function, weights: list[Tensor], inputs: list[Tensor], targets: list[Tensor]) -> Any:
    """Return each rank's gradient, and the loss that the last rank returns."""
    nothing = [None] * len(inputs)

    def on_rank(comm: Any) -> Any:
        group = PracticeCommunication(comm)
        stage = nn.Sequential(nn.Linear(*weights[0].shape, bias=False), nn.Tanh())
        with torch.no_grad():
            stage[0].weight.copy_(weights[group.rank])
        first, last = group.rank == 0, group.rank == group.size - 1
        given = [list(inputs if first else nothing), list(targets if last else nothing)]
        loss = function(stage, group, *given, mse_loss, tuple(inputs[0].shape))
        return stage[0].weight.grad, torch.as_tensor(loss).float() if last else None

    with one_thread():
        return practice_groups(on_rank, len(weights), timeout=LIMIT_S).results


@hidden("10/3")
def gpipe_order(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    yield from _orders(function, draw)


@hidden("10/4")
def one_f_one_b_order(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    yield from _orders(function, draw)


def _orders(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for ranks, m in ((5, 2), *draw.integers(1, 9, (6, 2)).tolist()):
        yield [[(str(kind), int(i)) for kind, i in function(rank, ranks, m)] for rank in range(ranks)]


@hidden("10/5")
def bubble_and_stashes(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for ranks, m in draw.integers(1, 12, (6, 2)).tolist():
        for schedule in ("GPipe", "1F1B"):
            yield _two_numbers(function(schedule, ranks, m))
        yield _two_numbers(function("interleaved", ranks, m * ranks, int(draw.integers(2, 5))))


def _two_numbers(answer: Any) -> Any:
    bubble, stashes = answer
    return np.asarray([bubble], np.float64), int(stashes)
