"""Hidden inputs of lab 09 on practice ranks of torch.distributed: the final tensors, rank by rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from operator import index
from typing import Any

import numpy as np
import torch
import torch._dynamo  # the first hook into torch's operators takes a second; run it once for all answers
from torch import Tensor, nn

from labs_helpers.data_parallel.lab08.hidden.replicas import Net, draw_batches, on_ranks, on_ranks_that_send
from labs_helpers.data_parallel.lab09.freed_memory import watched_memory
from labs_helpers.data_parallel.lab09.hidden.shards import (
    ADAMW,
    MOMENTUM,
    PLAIN,
    TWO_GROUPS,
    WORLDS,
    Maker,
    passes_ahead,
    pieces_of,
    sharded_passes,
)
from labs_helpers.data_parallel.lab09.shards import cut, parameters_on, shard_of, train_on
from labs_helpers.grading.hidden import hidden, normal
from labs_helpers.grading.hidden.ranks import hidden_on_ranks
from labs_helpers.practice.process_groups import second_group

Function = Callable[..., Any]
LAYOUTS = ("bf16 with float32 master", "autocast over float32", "bf16")


@hidden("09/1")
def states_in_bytes(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for layout in LAYOUTS:
        for ranks in (1, *draw.integers(2, 200, 2)):
            yield function(int(draw.integers(1, 10**9)), int(ranks), layout)


@hidden("09/2")
def shard_pieces(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for world_size in (1, *draw.integers(2, 9, 4)):
        numels = draw.integers(1, 30, draw.integers(1, 10)).tolist()
        for rank in range(world_size):
            shard_numel, pieces = function(numels, int(world_size), rank)
            yield [index(shard_numel), [list(map(index, piece)) for piece in pieces], numels]


@hidden("09/3")
def sharded_groups(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for world_size in (1, *draw.integers(2, 6, 2)):
        numels = draw.integers(1, 12, 6).tolist()
        decay, (first, second, *more) = float(draw.uniform(0.1, 0.5)), np.split(draw.permutation(6), (2, 3, 5))
        for rank in range(world_size):
            shard_numel, pieces = pieces_of(numels, int(world_size), rank)
            shard, groups = normal(draw, shard_numel), [
                {"params": first.tolist(), "weight_decay": decay},
                {"params": second.tolist(), "lr": float(draw.uniform(0.1, 0.5)), "weight_decay": 0.0},
                {"params": more[0].tolist(), "weight_decay": decay},
                {"params": more[1].tolist(), "weight_decay": decay / 2},
            ]  # fmt: skip
            given = deepcopy(groups)
            tensors, param_groups = function(shard, pieces, groups)
            number = {id(tensor): i for i, tensor in enumerate(tensors)}
            yield [isinstance(tensor, nn.Parameter) for tensor in tensors]
            yield [group | {"params": sorted(number[id(p)] for p in group["params"])} for group in param_groups]
            yield groups == given
            if pieces:
                for i, tensor in enumerate(tensors):
                    tensor.grad = torch.full_like(tensor, i + 1.0)
                torch.optim.SGD(param_groups, lr=0.25).step()
            yield [list(tensors), shard]


@hidden_on_ranks("09/4")
def zero1_step(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def steps(group: Any, rank: int, whole: Tensor, own: list[Tensor], numels: list[int], make: Maker) -> Any:
        whole = whole.clone()
        _, pieces = pieces_of(numels, group.size(), group.rank())
        tensors = parameters_on(whole.chunk(group.size())[group.rank()], pieces)
        optimizer, left = make(tensors), []
        for gradient in own:
            function(whole, gradient.clone(), optimizer, tensors, group)
            left.append([whole.clone(), all(tensor.grad is None for tensor in tensors)])
        return left

    for size, groups, make, dtype in WORLDS:
        numels = draw.integers(1, 12, 5).tolist()
        total, members = sum(numels), 2 if groups else size
        whole, *flat = (torch.cat(cut(normal(draw, total, dtype=dtype), members)) for _ in range(1 + 3 * size))
        own = [flat[3 * rank : 3 * rank + 3] for rank in range(size)]
        yield on_ranks_that_send(steps, size, [whole] * size, own, [numels] * size, make, groups=groups)


@hidden("09/5")
def sent_per_step(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for ranks in (1, *draw.integers(2, 100, 4)):
        sizes = [int(n) for n in draw.integers(1, 10**9, 2)]
        yield function(*sizes, int(ranks))
        yield function(*sizes, int(ranks), int(draw.integers(1, 9)))


@hidden_on_ranks("09/6")
def reduce_in_backward(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def passes(group: Any, rank: int, seed: int, dtype: Any, ends: list[int], batches: list[Tensor]) -> Any:
        model, left = Net(seed).to(dtype), list[Any]()
        arriving = [p for p in model.parameters() if p.requires_grad][::-1]
        buckets = [arriving[begin:end] for begin, end in zip([0, *ends], [*ends, len(arriving)], strict=True)]
        counts = [sum(p.numel() for p in bucket) for bucket in buckets]
        shards = [nn.Parameter(torch.zeros(-(-count // group.size()), dtype=dtype)) for count in counts]
        finish = function(buckets, shards, group)
        for number, batch in enumerate(batches):
            if number == 2:
                for shard in shards:
                    shard.grad = None
            model.loss(batch).backward()
            gone = all(p.grad is None for p in arriving)
            finish()
            for count, shard in zip(counts, shards, strict=True):
                real = max(count - group.rank() * len(shard), 0)  # the rest is padding
                left.append([gone, None if shard.grad is None else shard.grad[:real].clone()])
        return left

    for size, groups, _, dtype in WORLDS:
        ends = sorted(draw.choice(np.arange(1, 6), 2, replace=False).tolist())
        own = [draw_batches(draw, 3) for _ in range(size)]
        yield on_ranks_that_send(passes, size, int(draw.integers(10**6)), dtype, [ends] * size, own, groups=groups)


@hidden_on_ranks("09/7")
def shard_module(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for size, groups, _, _ in WORLDS:
        widths = draw.integers(2, 6, 3).tolist()
        values = [normal(draw, 1 + out * (into + 1)) for into, out in zip(widths, widths[1:], strict=False)]
        own = [[normal(draw, 3, widths[0]) for _ in range(2)] for _ in range(size)]
        with watched_memory() as watched:
            passes = partial(sharded_passes, function, watched)
            yield on_ranks_that_send(passes, size, [widths] * size, [values] * size, own, groups=groups)


@hidden_on_ranks("09/8")
def clip_shards(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def clipped(group: Any, rank: int, shards: list[Tensor], max_norm: float) -> Any:
        norm = function(list(shards), max_norm, group)
        return [str(norm.dtype), norm, shards]

    cases = (1.0, 0.3), (1.0, 3.0), (1e-6, 0.4)  # last because it is so small that 1e-6 counts
    for scale, factor in cases:
        for size, groups, _, _ in WORLDS:
            for dtype in (torch.float32, torch.bfloat16):
                lengths = [1, *draw.integers(16, 30, draw.integers(1, 4)).tolist()]  # a norm close to its mean
                shards = [[scale * normal(draw, length, dtype=dtype) for length in lengths] for _ in range(size)]
                members = 2 if groups else size
                yield on_ranks_that_send(
                    clipped, size, shards, scale * factor * (members * sum(lengths)) ** 0.5, groups=groups
                )


@hidden_on_ranks("09/9")
def checkpoint(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def saved(group: Any, rank: int, start: Tensor, gradients: list[Tensor], make: Maker) -> Any:
        shard = nn.Parameter(shard_of(group, start))
        optimizer = make([shard])
        save, _ = function(shard, optimizer, len(start), group)
        train_on(shard, optimizer, [shard_of(group, one) for one in gradients[:2]])
        state = save()
        train_on(shard, optimizer, [shard_of(group, gradients[2])])
        return state, shard

    def loaded(group: Any, rank: int, state: Any, gradients: list[Tensor], make: Maker) -> Any:
        numel, state = len(state["parameters"]), deepcopy(state)
        shard = nn.Parameter(torch.full_like(shard_of(group, state["parameters"]), 9.0))
        optimizer = make([shard])
        _, load = function(shard, optimizer, numel, group)
        load(state)
        there = [shard.detach().clone(), deepcopy(dict(optimizer.state[shard]))]
        train_on(shard, optimizer, [shard_of(group, gradients[2])])
        return there, shard, state

    for (_, _, make, dtype), sizes in zip(WORLDS, ((3, 2), (2, 4), (4, 1)), strict=True):
        start = normal(draw, int(draw.integers(5, 20)), dtype=dtype)
        gradients = [normal(draw, len(start), dtype=dtype) for _ in range(3)]
        alone = nn.Parameter(start.clone())
        optimizer = make([alone])
        train_on(alone, optimizer, gradients[:2])
        state = {"parameters": alone.detach(), "optimizer": dict(optimizer.state[alone])}
        for size, groups in ((sizes[0], None), (4, TWO_GROUPS)):
            yield on_ranks(saved, size, [start] * size, [gradients] * size, make, groups=groups)
        yield on_ranks(loaded, sizes[1], [state] * sizes[1], [gradients] * sizes[1], make)


@hidden_on_ranks("09/10")
def hybrid_step(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def steps(
        group: Any, rank: int, peers: list[int], whole: Tensor, own: list[list[Tensor]], max_norm: float, make: Maker
    ) -> Any:
        replicas, whole = second_group(group, peers), whole.clone()
        shard = nn.Parameter(whole.chunk(group.size())[group.rank()])
        optimizer, left = make([shard]), []
        for gradients in own:
            norm = function(whole, (one.clone() for one in gradients), optimizer, shard, max_norm, group, replicas)
            left.append([norm, whole.clone(), shard.grad is None])
        return left

    for shards, nodes, micro, factor, make in (
        (2, 2, 1, 0.1, PLAIN), (3, 2, 3, 10.0, MOMENTUM), (2, 3, 2, 0.1, ADAMW), (3, 1, 2, 0.2, PLAIN),
        (1, 3, 2, 0.2, MOMENTUM),
    ):  # fmt: skip
        ranks, n = shards * nodes, shards * int(draw.integers(2, 8))
        scale = 1.0 if nodes > 1 else 1e-6  # so small that the 1e-6 in the factor counts
        inside = draw.permutation(ranks).reshape(nodes, shards)
        peers = [next(column.tolist() for column in inside.T if rank in column) for rank in range(ranks)]
        own = [[[scale * normal(draw, n) for _ in range(micro)] for _ in range(2)] for _ in range(ranks)]
        whole, max_norm = scale * normal(draw, n), scale * factor * (n / ranks / micro) ** 0.5
        yield on_ranks_that_send(steps, ranks, peers, [whole] * ranks, own, max_norm, make, groups=inside.tolist())


@hidden("09/12")
def tokens_to_hide(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for ranks in (1, *draw.integers(2, 100, 4)):
        achieved, busbw = (float(x) for x in draw.uniform(1e9, 1e12, 2))
        yield function(achieved, busbw, int(ranks))
        yield function(achieved, busbw, int(ranks), int(draw.integers(1, 5)), int(draw.integers(5, 9)))


@hidden_on_ranks("09/11")
def gather_ahead(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for size, groups, _, _ in WORLDS:
        widths = draw.permutation([2, 3, 5, 7])[: 3 + (size == 4)].tolist()
        values = [normal(draw, 1 + out * (into + 1)) for into, out in zip(widths, widths[1:], strict=False)]
        own = [[normal(draw, 3, widths[0]) for _ in range(2)] for _ in range(size)]
        with watched_memory() as watched:
            passes = partial(passes_ahead, function, watched)
            yield on_ranks_that_send(passes, size, [widths] * size, [values] * size, own, groups=groups)
