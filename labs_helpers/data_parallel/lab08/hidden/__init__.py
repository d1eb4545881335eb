"""Hidden inputs of lab 08: run each answer on practice ranks, and return the final values on each rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from labs_helpers.data_parallel.lab08.hidden.replicas import (
    WORLDS,
    Net,
    averaging,
    bytes_of,
    draw_batches,
    on_ranks,
    on_ranks_within,
    trained_by,
)
from labs_helpers.grading.hidden import hidden, kept, normal
from labs_helpers.grading.hidden.ranks import hidden_on_ranks

Function = Callable[..., Any]
DTYPES = (torch.float32, torch.float64, torch.bfloat16)


@hidden_on_ranks("08/1")
def same_start(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def start(group: Any, rank: int, seed: int) -> Any:
        model, generator = Net(seed + rank), torch.Generator().manual_seed(seed + rank)
        model.gaps = nn.Parameter(torch.randn(3, 8, generator=generator)[:, 2:7])
        model.norm = nn.BatchNorm1d(3)
        model.norm.register_buffer("running_var", torch.rand(3, generator=generator))
        model.norm.register_buffer("num_batches_tracked", torch.tensor(2**53 + 7 * rank + 1))
        model.register_buffer("table", torch.randn(2, 3, generator=generator), persistent=False)
        before = {name: (id(x), x.data_ptr(), x.stride()) for name, x in _tensors(model).items()}
        function(model, group)
        after = _tensors(model)
        return after, before == {name: (id(x), x.data_ptr(), x.stride()) for name, x in after.items()}

    for size, groups in WORLDS:
        yield on_ranks(start, size, int(draw.integers(10**6)), groups=groups)


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    return dict([*model.named_parameters(), *model.named_buffers()])


@hidden_on_ranks("08/2")
def average_gradients(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    yield from _averages(function, draw, lambda model: None, most=math.inf)


@hidden_on_ranks("08/3")
def flat_average(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def memories(model: nn.Module) -> int:
        return _memories(p for p in model.parameters() if p.requires_grad)

    yield from _averages(function, draw, memories, most=len(DTYPES))


def _memories(parameters: Iterable[nn.Parameter]) -> int:
    """Count the different tensors that hold these parameters' gradients."""
    return len({p.grad.untyped_storage().data_ptr() for p in parameters if p.grad is not None})


def _averages(
    function: Function, draw: np.random.Generator, more: Callable[[nn.Module], Any], most: float
) -> Iterator[Any]:
    """Average gradients of parameters of several dtypes: some transposed, one frozen, one shared.

    most: the largest number of calls with three dtypes.
    """

    def averaged(group: Any, rank: int, values: list[Tensor], own: list[Tensor | None], frozen: int) -> Any:
        model = nn.ParameterList(nn.Parameter(x.mT.contiguous().mT if x.ndim > 1 else x.clone()) for x in values)
        for p, gradient in zip(model, own, strict=True):
            p.grad = gradient if gradient is None else torch.empty_like(p.detach()).copy_(gradient)
        if frozen >= 0:
            model[frozen].requires_grad_(False)  # its .grad may be from an earlier step
            model.tied = model[1 - frozen]
        function(model, group)
        grads = [None if p.grad is None else [str(p.grad.dtype), list(p.grad.shape), p.grad] for p in model]
        return grads, list(model), more(model)

    given = [[normal(draw, 3, 2), normal(draw, 4)] for _ in range(3)]
    yield on_ranks_within(most / len(DTYPES), len, averaged, 2, [given[0]] * 2, given[1:], -1)
    for size, groups in WORLDS:
        values = [normal(draw, *draw.integers(1, 6, draw.integers(0, 4)), dtype=dtype)
                  for dtype in draw.permutation(np.array([*DTYPES] * 3, object))]  # fmt: skip
        # The values are near 4, so that a sum of a few of them in bfloat16 keeps its digits.
        own = [[None if draw.random() < 0.2 else 4 + normal(draw, *x.shape, dtype=x.dtype) for x in values]
               for _ in range(size)]  # fmt: skip
        frozen = int(draw.integers(2))
        yield on_ranks_within(most, len, averaged, size, [values] * size, own, frozen, groups=groups)


@hidden_on_ranks("08/4")
def overlapped(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def train(group: Any, rank: int, seed: int, given: list[Tensor]) -> Any:
        model = Net(seed)
        finish = function(model, group)
        return [trained_by(model, [batch], finish, number != 1) for number, batch in enumerate(given)]

    for size, groups in WORLDS:
        given = [draw_batches(draw, 3) for _ in range(size)]
        yield on_ranks(train, size, int(draw.integers(10**6)), given, groups=groups)


@hidden_on_ranks("08/6")
def bucketed(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def train(group: Any, rank: int, seed: int, ends: list[int], batches: list[Tensor], used: list[bool]) -> Any:
        model = Net(seed)
        arriving = [p for p in model.parameters() if p.requires_grad][::-1]
        buckets = [arriving[begin:end] for begin, end in zip([0, *ends], [*ends, len(arriving)], strict=True)]
        finish, no_sync = function(model, group, buckets)
        with suppress(InterruptedError), no_sync():
            raise InterruptedError
        steps: list[Any] = []
        for number in range(3):
            mine = slice(2 * number, 2 * number + 1 + number % 2)  # one pass in steps 0 and 2, two in step 1
            steps.append(trained_by(model, batches[mine], finish, number != 1, used[mine], no_sync))
            steps.append([_memories(some) for some in buckets])
        return steps

    for size, groups in WORLDS:
        given = [draw_batches(draw, 6) for _ in range(size)]
        used = [draw.integers(0, 2, 6).tolist() for _ in range(size)]
        ends = sorted(draw.choice(np.arange(1, 6), 2, replace=False).tolist())
        sent = 3 * (len(ends) + 1), len  # in three steps
        yield on_ranks_within(*sent, train, size, int(draw.integers(10**6)), [ends] * size, given, used, groups=groups)


@hidden("08/5")
def make_buckets(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for kinds in (1, 2, 3, 3, 3, 3):
        parameters = [nn.Parameter(torch.empty(int(draw.integers(1, 16)), dtype=DTYPES[draw.integers(kinds)]))
                      for _ in range(draw.integers(1, 20))]  # fmt: skip
        number, given = {id(p): i for i, p in enumerate(parameters)}, list(parameters)
        buckets = function(given, int(draw.integers(40, 200)), int(draw.integers(8, 100)))
        yield [[number[id(p)] for p in bucket] for bucket in buckets]
        yield [number[id(p)] for p in given]


@hidden("08/7")
def exposed(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for counts in ((0, 3), (3, 0), *draw.integers(1, 12, (6, 2))):
        compute, communication = (_intervals(draw, int(count)) for count in counts)
        same = kept(compute, communication)
        # As one array, a 0 is compared up to rounding too.
        yield np.asarray(function(compute, communication), np.float64)
        yield same()


def _intervals(draw: np.random.Generator, count: int) -> list[tuple[float, float]]:
    """Draw intervals, some of which overlap; their sums are exact in floating point."""
    starts, lengths = draw.integers(0, 9000, count) / 1024, draw.integers(1, 2500, count) / 1024
    return list(zip(starts.tolist(), (starts + lengths).tolist(), strict=True))


@hidden_on_ranks("08/8")
def accumulated(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def step(group: Any, rank: int, start: list[Tensor], batches: list[Tensor], max_norm: float) -> Any:
        weight, bias = (nn.Parameter(x.clone()) for x in start)
        given = list(batches)
        finish, no_sync = averaging([weight, bias], group)
        norm = function(given, lambda batch: (torch.tanh(batch @ weight) + bias).square().mean(), [weight, bias],
                        finish, no_sync, max_norm)  # fmt: skip
        same = len(given) == len(batches) and all(map(torch.equal, given, batches))
        return [weight.grad, bias.grad, torch.as_tensor(norm).float(), same]

    for size, count, factor in ((1, 3, 0.5), (2, 1, 0.1), (3, 4, 100.0), (3, 3, 0.2)):
        samples = int(count * draw.integers(2, 6))
        cuts = [sorted(draw.choice(np.arange(1, samples), count - 1, replace=False).tolist()) for _ in range(size)]
        given = [list(normal(draw, samples, 4).tensor_split(own)) for own in cuts]
        same = kept(given)
        yield on_ranks(step, size, [[normal(draw, 4), normal(draw)]] * size, given, factor)
        yield same()


@hidden_on_ranks("08/9")
def top_k_mean(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def steps(group: Any, rank: int, flats: list[Tensor], k: int) -> Any:
        residual, left = torch.zeros_like(flats[0]), []
        for flat in flats:
            function(flat, residual, k, group)
            left.append([flat, residual.clone()])
        return left

    for size, groups in ((1, None), *WORLDS):
        n = int(draw.integers(5, 60))
        flats = [[normal(draw, n) for _ in range(3)] for _ in range(size)]
        k = int(draw.choice((1, n // 3, n)))
        most = 8 * k * len(flats[0]) if size > 1 else math.inf  # values and positions take 4 bytes each
        yield on_ranks_within(most, bytes_of, steps, size, flats, k, groups=groups)
