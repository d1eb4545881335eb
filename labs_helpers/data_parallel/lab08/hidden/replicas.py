"""Run functions and training steps of a model on practice ranks of torch.distributed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from labs_helpers.course.verdict import one_thread
from labs_helpers.grading.hidden.ranks import LIMIT_S
from labs_helpers.practice.process_groups import ProcessRun, practice_process_groups

WORLDS = ((2, None), (3, None), (5, [(4, 0, 2), (3, 1)]))  # number of ranks, and their groups


def on_ranks(
    on_rank: Callable[..., Any], size: int, *args: Any, groups: Sequence[Sequence[int]] | None = None
) -> list[Any]:
    """Return on_rank(group, rank, *args) of each rank; a list among args holds one element per rank."""
    return _run(on_rank, size, *args, groups=groups).results


def on_ranks_within(
    limit: float,
    sent: Callable[[list[Any]], float],
    on_rank: Callable[..., Any],
    size: int,
    *args: Any,
    groups: Sequence[Sequence[int]] | None = None,
) -> list[Any]:
    """Return the same, and per rank whether sent(its collective calls) is at most limit."""
    run = _run(on_rank, size, *args, groups=groups)
    return [*run.results, [sent(run.of(rank)) <= limit for rank in range(size)]]


def bytes_of(calls: list[Any]) -> float:
    """Return the bytes that one rank sends; a gather or broadcast records the tensors of all ranks."""
    shared = ("all_gather", "broadcast")
    return sum(call.nbytes / (len(call.ranks) if call.name.startswith(shared) else 1) for call in calls)


def on_ranks_that_send(
    on_rank: Callable[..., Any], size: int, *args: Any, groups: Sequence[Sequence[int]] | None = None
) -> list[Any]:
    """Return the same, and per rank the sorted kinds and element counts of its collective calls."""
    run = _run(on_rank, size, *args, groups=groups)
    sent = [[call for call in run.of(rank) if len(call.ranks) > 1 and call.name != "barrier"] for rank in range(size)]
    return [*run.results, [sorted([_kind(call.name), call.elements] for call in own) for own in sent]]


def _kind(name: str) -> str:
    return next((kind for kind in ("reduce_scatter", "all_gather", "all_reduce") if name.startswith(kind)), name)


def _run(
    on_rank: Callable[..., Any], size: int, *args: Any, groups: Sequence[Sequence[int]] | None = None
) -> ProcessRun:
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's warnings about deprecated names
        return practice_process_groups(on_rank, size, *args, groups=groups, timeout=LIMIT_S)


class Net(nn.Module):
    """A model with a tied embedding, a frozen layer, and a branch that some passes skip."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape, generator=generator))

        self.embedding, self.first, self.bias = parameter(6, 4), parameter(4, 5), parameter(5)
        self.frozen, self.branch = parameter(5, 5).requires_grad_(False), parameter(5, 5)
        self.last, self.scale = nn.Parameter(parameter(5, 4).data.mT.contiguous().mT), parameter(1)
        self.output = nn.Module()
        self.output.weight = self.embedding

    def loss(self, tokens: Tensor, branch: bool = True) -> Tensor:
        x = torch.tanh(self.embedding[tokens] @ self.first + self.bias) @ self.frozen
        x = x + torch.tanh(x @ self.branch) if branch else x
        return nn.functional.cross_entropy(self.scale * x @ self.last @ self.embedding.mT, tokens.roll(1))


def draw_batches(draw: np.random.Generator, count: int) -> list[Tensor]:
    """Draw batches of tokens for Net."""
    return [torch.from_numpy(draw.integers(0, 6, 7)) for _ in range(count)]


def trained_by(
    model: Net,
    batches: Sequence[Tensor],
    finish: Callable[[], Any],
    to_none: bool,
    used: Sequence[bool] = (True,),
    no_sync: Any = None,
) -> list[Tensor | None]:
    """Train one step with one backward pass per batch, and return the step's gradients.

    used: per pass, whether it uses the branch.
    """
    model.zero_grad(set_to_none=to_none)
    for batch, branch in list(zip(batches, used, strict=True))[:-1]:
        with no_sync():
            model.loss(batch, branch).backward()
    model.loss(batches[-1], used[-1]).backward()
    finish()
    with torch.no_grad():
        for p in model.parameters():
            if p.grad is not None:
                p.sub_(p.grad, alpha=0.1)
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


def averaging(parameters: list[nn.Parameter], group: Any) -> tuple[Callable[[], None], Callable[[], Any]]:
    """Return (finish, no_sync) like lab 08's exercise 6, with one message per parameter."""
    under_way: dict[nn.Parameter, Any] = {}
    quiet: list[bool] = []

    def send(p: nn.Parameter) -> None:
        if not quiet:
            under_way[p] = dist.all_reduce(p.grad, group=group, async_op=True)

    def finish() -> None:
        for p in parameters:
            if p not in under_way:
                send(p)
        for p, work in under_way.items():
            work.wait()
            if p.grad is not None:
                p.grad.div_(dist.get_world_size(group))
        under_way.clear()

    @contextmanager
    def no_sync() -> Iterator[None]:
        quiet.append(True)
        try:
            yield
        finally:
            quiet.pop()

    for p in parameters:
        p.register_post_accumulate_grad_hook(send)
    return finish, no_sync
