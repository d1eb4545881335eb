"""Hidden inputs of exercises 6 to 9: interleaved stages, split backward passes, rank groups, unequal stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch import nn

from labs_helpers.grading.hidden import hidden, kept, whole
from labs_helpers.pipeline.messages import complete
from labs_helpers.pipeline.schedule import Action, Schedule
from labs_helpers.pipeline.schedules import one_f_one_b
from labs_helpers.pipeline.simulate import Times, simulate
from labs_helpers.pipeline.validate import InvalidSchedule, check, peak_stashes

Function = Callable[..., Any]
SHARE = 0.6  # easier than the check's share, since the times are drawn


@hidden("10/6")
def interleaved_order(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(6):
        ranks, groups, chunks = (int(draw.integers(low, 6)) for low in (1, 1, 2))
        yield [[list(action) for action in function(rank, ranks, groups * ranks, chunks)] for rank in range(ranks)]


@hidden("10/7")
def split_backward(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for rows in ((4,), (2, 3), (2, 1, 2)):
        n, middle, k = (int(size) for size in draw.integers(2, 6, 3))
        weights = [nn.Parameter(whole(draw, middle, n)), nn.Parameter(whole(draw, k, middle))]
        linear, add_weight_gradients = function()
        for micro_batches in (1, 2):
            for _ in range(micro_batches):
                x = whole(draw, *rows, n).requires_grad_()
                y = linear(x, weights[0])
                x2 = y.detach().clone().requires_grad_()
                y2 = linear(x2, weights[1])
                y2.backward(whole(draw, *rows, k))
                y.backward(x2.grad)
                yield [y2.detach(), x.grad]
            yield [weight.grad is None for weight in weights]
            for _ in range(micro_batches):  # the second finds nothing to add
                add_weight_gradients()
            yield [[weight.grad.clone(), weight.grad.requires_grad] for weight in weights]


@hidden("10/8")
def rank_groups(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for count in (1, 2, 3, 3, 4, 4):
        axes = draw.permutation(["dp", "pp", "tp", "cp"])[:count].tolist()
        sizes = {axis: int(draw.integers(1, 5)) for axis in axes}
        exposed = dict(zip(axes, (1e6 * draw.permutation(50)[:count]).tolist(), strict=True))
        same = kept(sizes, exposed)
        groups = function(sizes, exposed)
        yield {axis: sorted(list(map(int, group)) for group in groups[axis]) for axis in sorted(sizes)}
        yield same()


@hidden("10/9")
def unequal_order(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for ranks in (2, 3, 4, 4):
        times = [_stage(draw) for _ in range(ranks)]
        micro_batches, stashes = 3 * ranks, [2 * ranks - 1] * ranks
        same = kept(times, stashes)
        orders = function(times, micro_batches, stashes)
        yield [_bound(orders, times, micro_batches, stashes), same()]


def _stage(draw: np.random.Generator) -> tuple[float, float, float]:
    """Draw the times of a stage."""
    forward = draw.uniform(1, 2)
    return float(forward), float(forward * draw.uniform(0.9, 1.2)), float(forward * draw.uniform(0.5, 0.9))


def _bound(orders: Any, times: list, micro_batches: int, stashes: list[int]) -> float:
    """Return the bound of the step if the orders are valid, hold few enough stashes, and are fast enough, else 0."""
    named = [[Action(kind, rank, i) for kind, i in order] for rank, order in enumerate(orders)]
    schedule = Schedule.of("answer", named, micro_batches)
    try:
        check(complete(schedule))
    except InvalidSchedule:
        return 0.0
    if any(held > most for held, most in zip(peak_stashes(schedule), stashes, strict=True)):
        return 0.0
    forward, of_input, weight = zip(*times, strict=True)
    mine, theirs = (
        simulate(one, Times(forward, of_input, weight)).seconds
        for one in (schedule, one_f_one_b(len(times), micro_batches))
    )
    bound: float = micro_batches * max(map(sum, times))
    return bound if mine - bound <= SHARE * (theirs - bound) else 0.0
