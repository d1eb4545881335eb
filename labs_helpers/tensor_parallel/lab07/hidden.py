"""Hidden inputs of lab 07: run answers on practice ranks, and yield each rank's result and if inputs changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from operator import index
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.grading.hidden import hidden, kept, normal
from labs_helpers.grading.hidden.ranks import LIMIT_S, hidden_on_ranks, names_of
from labs_helpers.practice.groups import GroupRun, practice_groups

Function = Callable[..., Any]
LAYERS = ("fc_q", "fc_k", "fc_v", "fc_o")
DTYPES = (np.float64, np.float32, np.float16, np.int64)


@hidden("07/1")
def trace_shapes(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for mp_size in (1, *draw.integers(2, 12, 3)):
        batch, length, part = (int(n) for n in draw.integers(1, 40, 3))
        shapes = function(batch, length, part * int(mp_size), int(mp_size))
        yield {layer: [[index(n) for n in shape] for shape in of_layer] for layer, of_layer in shapes.items()}


@hidden_on_ranks("07/2")
def get_info(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def place(comm: Any, mp_size: int, dp_size: int, layer: str, dims: tuple[int, int]) -> Any:
        try:
            *indices, mp_comm, dp_comm, part_in, part_out = function(comm, comm.rank, mp_size, dp_size, layer, *dims)
        except ValueError:
            return "refused"
        groups = [(group.rank, group.size, group.allgather(comm.rank)) for group in (mp_comm, dp_comm)]
        return [*groups, *map(index, (*indices, part_in, part_out))]

    def in_halves(comm: Any, *case: Any) -> Any:
        return place(comm.Split(color=comm.rank % 2, key=-comm.rank), *case)

    for layer in draw.permutation(LAYERS):
        mp_size, dp_size = (int(n) for n in draw.integers(1, 4, 2))
        whole, other = int(mp_size * draw.integers(1, 9)), int(draw.integers(1, 50))
        dims = (whole, other) if layer == "fc_o" else (other, whole)
        yield _ranks(function, mp_size * dp_size, place, mp_size, dp_size, str(layer), dims)
        yield _ranks(function, 2 * mp_size * dp_size, in_halves, mp_size, dp_size, str(layer), dims)
    whole = int(draw.integers(1, 9))
    yield _ranks(function, 4, place, 2, 2, "fc_q", (2 * whole, 2 * whole + 1))
    yield _ranks(function, 4, place, 2, 2, "fc_o", (2 * whole + 1, 2 * whole))
    yield _ranks(function, 4, place, 2, 2, str(draw.choice(("fc", "fc_1", "q", "FC_Q"))), (4 * whole, 4 * whole))
    for size in (2, 5, 8):
        yield _ranks(function, size, place, 2, 2, "fc_k", (4 * whole, 4 * whole))


@hidden("07/3")
def split_data(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    names_of(function)
    for mp_size, dp_size, more in (*draw.integers(1, 5, (3, 3)), (2, 3, 0)):
        n = int(dp_size * draw.integers(1, 7))
        x, y = draw.standard_normal((n, *draw.integers(1, 4, more))), draw.integers(0, 100, (n, 2)[: 1 + more % 2])
        yield [function(x, y, int(mp_size), int(dp_size), rank) for rank in range(mp_size * dp_size)]
    for samples in (int(draw.integers(1, 4)), int(4 * draw.integers(1, 9) + draw.integers(1, 4))):
        try:
            yield function(np.zeros((samples, 2)), np.zeros(samples), 2, 4, 1)
        except ValueError:
            yield "refused"


@hidden_on_ranks("07/4")
def naive_collect_forward_input(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for size, xs in _activations(draw, parts=False):
        same = kept(xs)
        run = _run(function, size, lambda comm, x: _with_dtype(function(x, comm, comm.size)), xs)
        yield run.results, len(_sent(run))
        yield same()


@hidden_on_ranks("07/6")
def naive_collect_backward_x(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for size, grads in _activations(draw, parts=True):
        same = kept(grads)
        run = _run(function, size, lambda comm, grad: _with_dtype(function(grad, comm, comm.size)), grads)
        yield run.results, len(_sent(run))
        yield same()


@hidden_on_ranks("07/7")
def column_parallel_linear(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    yield from _layers(function, draw, "column")


@hidden_on_ranks("07/8")
def row_parallel_linear(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    yield from _layers(function, draw, "row")


@hidden_on_ranks("07/9")
def average_gradients(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def means(comm: Any, own: list[Tensor]) -> list[Any]:
        return [[list(mean.shape), str(mean.dtype), mean] for mean in function(own, PracticeCommunication(comm))]

    for size in (1, *draw.integers(2, 6, 2)):
        shapes = [tuple(map(int, draw.integers(1, 6, draw.integers(0, 4)))) for _ in range(draw.integers(2, 7))]
        shapes += [(1, 1), (2, 0)]
        given = [[normal(draw, *shape[::-1]).permute(tuple(range(len(shape)))[::-1]) for shape in shapes]
                 for _ in range(size)]  # fmt: skip
        same = kept(given)
        run = _run(function, int(size), means, given)
        yield run.results, _sent(run)
        yield same()


@hidden_on_ranks("07/10")
def parallel_cross_entropy(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    """Try usual logits, logits far apart, logits all near ±10,000, where float32 has few digits, and a large
    vocabulary, which must not make the messages large."""
    kinds = ("usual", torch.float32), ("far", torch.float32), ("large", torch.bfloat16), ("wide", torch.float32)
    for kind, dtype in (kinds[0], kinds[0], *kinds):
        size, batch, length, part = (int(n) for n in draw.integers((1, 1, 2, 2), 6))
        if kind == "wide":  # a vocabulary so large that the necessary messages are smaller than the logits
            size, part = max(size, 2), 64
        targets = torch.from_numpy(draw.integers(0, part * size, (length, batch))).T
        whole = normal(draw, batch, length, part * size)
        if kind == "far":
            whole = torch.from_numpy(draw.uniform(-10_000, 10_000, whole.shape)).float()
        elif kind == "large":
            whole = 9_990.0 * torch.from_numpy(draw.choice((-1.0, 1.0), (batch, length, 1))).float() + whole
        given = list(map(_apart, whole.chunk(size, -1)))
        same = kept(given, targets)

        def loss_and_gradient(comm: Any, own: Tensor, targets: Tensor = targets, dtype: Any = dtype) -> list[Any]:
            loss, gradient = function(own, targets, PracticeCommunication(comm))
            return [loss.reshape(()).to(dtype), str(gradient.dtype), gradient.to(dtype)]

        run = _run(function, size, loss_and_gradient, given)
        yield run.results
        if kind == "wide":
            yield sum(nbytes for _, nbytes in _sent(run)) < whole.nbytes / 2
        yield same()


@hidden_on_ranks("07/11")
def conjugate_operators(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    def passes(comm: Any, sequence_parallel: bool, given: list[Tensor]) -> list[Tensor]:
        group, found = PracticeCommunication(comm), []
        for operator, x, grad in zip(function(group, sequence_parallel), given[::2], given[1::2], strict=True):
            y = operator(x.requires_grad_())
            found += [y.detach(), torch.autograd.grad(y, x, grad)[0]]
        return found

    for size, sequence_parallel in ((2, False), (2, True), (int(draw.integers(3, 5)), bool(draw.integers(2)))):
        batch, part, width = (int(n) for n in draw.integers(1, 5, 3))
        inside, outside = (batch, part * size, width), (batch, part * (1 if sequence_parallel else size), width)
        drawn = [[normal(draw, *shape) for shape in (outside, inside, inside, outside)] for _ in range(size)]
        if not sequence_parallel:  # outside the layers tensors are the same on all ranks
            drawn = [[drawn[0][0], *own[1:3], drawn[0][3].clone()] for own in drawn]
        run = _run(function, size, passes, sequence_parallel, [[one.clone() for one in own] for own in drawn])
        yield run.results, _sent(run)


@hidden("07/12")
def communication_share(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for width, tp in draw.integers((16, 1), (9000, 17), (6, 2)):
        yield float(function(int(width), int(tp), float(draw.uniform(1e10, 1e15)), float(draw.uniform(1e8, 1e12))))


def _ranks(function: Function, size: int, on_rank: Callable[..., Any], *args: Any) -> list[Any]:
    """Return the result of on_rank(comm, *args) on each rank; a list among args holds one value per rank."""
    return _run(function, size, on_rank, *args).results


def _run(function: Function, size: int, on_rank: Callable[..., Any], *args: Any) -> GroupRun:
    names_of(function)
    return practice_groups(on_rank, size, *args, timeout=LIMIT_S)


def _sent(run: GroupRun) -> list[Any]:
    """Return the collectives that involve several ranks, each with its tensor's bytes, sorted."""
    return sorted([call.name, call.nbytes] for call in run.calls if len(call.ranks) > 1)


def _apart(part: Tensor) -> Tensor:
    """Copy a tensor with its strides into its own memory, separate from the other ranks' parts."""
    return torch.empty_strided(part.shape, part.stride(), dtype=part.dtype).copy_(part)


def _with_dtype(x: np.ndarray) -> list[Any]:
    return [str(x.dtype), x]


def _activations(draw: np.random.Generator, parts: bool) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield (ranks, one integer-valued array per rank), with several dtypes and memory orders.

    parts: make the number of ranks divide the features.
    """
    orders = list(permutations(range(3)))
    for number, size in enumerate((2, 1, *draw.integers(2, 6, 3))):
        shape = np.array(draw.integers(1, 6, 3))
        shape[2] *= size if parts else 1
        drawn = DTYPES[draw.integers(len(DTYPES))], orders[draw.integers(len(orders))]
        dtype, order = drawn if number else (np.float64, orders[0])
        whole = draw.integers(-50, 50, (size, *shape[list(order)])).astype(dtype)
        if dtype is np.int64:  # float64 cannot hold these
            whole = whole + 2**58
        yield int(size), [np.transpose(one.copy(), np.argsort(order)) for one in whole]


def _layers(function: Function, draw: np.random.Generator, split: str) -> Iterator[Any]:
    """Run two layers on the same ranks, and their backward passes in reverse order, twice each."""

    def both(comm: Any, own: Sequence[tuple[tuple[Tensor, ...], Tensor]]) -> list[Any]:
        group = PracticeCommunication(comm)
        outs, backwards = zip(*(function(*operands, group) for operands, _ in own), strict=True)
        return [*outs, *(backwards[layer](times * own[layer][1]) for layer in (1, 0) for times in (1, 3))]

    for size, dtype in ((1, torch.float32), (2, torch.float64), (int(draw.integers(3, 6)), torch.float32)):
        drawn = [_layer(draw, size, split, dtype) for _ in range(2)]
        own = [[layer[rank] for layer in drawn] for rank in range(size)]
        same = kept(own)
        run = _run(function, size, both, own)
        yield run.results, _sent(run)
        yield same()


def _layer(
    draw: np.random.Generator, size: int, split: str, dtype: torch.dtype
) -> list[tuple[tuple[Tensor, ...], Tensor]]:
    """Return ((x, weight, bias), grad_out) for each rank: slices, and tensors transposed in memory."""
    batch, length, into, out = (int(n) for n in draw.integers(1, 7, 4))
    shared, cut = (into, out * size) if split == "column" else (into * size, out)
    x, grad_out = (normal(draw, length, batch, n, dtype=dtype).transpose(0, 1) for n in (shared, cut))
    weight, bias = normal(draw, shared, cut, dtype=dtype), normal(draw, cut, dtype=dtype)
    if split == "column":
        parts = zip(*(map(_apart, tensor.chunk(size, -1)) for tensor in (weight, bias, grad_out)), strict=True)
        return [((x.clone(), columns, of_bias), of_grad) for columns, of_bias, of_grad in parts]
    pairs = zip(map(_apart, x.chunk(size, -1)), map(_apart, weight.chunk(size, 0)), strict=True)
    return [((part, rows, bias.clone()), grad_out.clone()) for part, rows in pairs]
