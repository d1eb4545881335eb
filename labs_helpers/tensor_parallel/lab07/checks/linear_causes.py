"""What common mistakes between ranks make of a layer's results: each candidate's answer is a tensor per rank."""

from __future__ import annotations

import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import Layer, Parts, own_gradients
from labs_helpers.tensor_parallel.lab07.checks.passes import Pass
from labs_helpers.tensor_parallel.lab07.checks.tensor_errors import STATE

EARLY = "until the wait() of start_all_reduce's request has returned, the tensor is not the sum: wait, then use it"
OTHER = f"backward works with tensors of another call: {STATE}"
DROPPED = "an all_reduce was called, but the sum is what it returns; the tensor that it takes stays as it is"


def alike(answer: Tensor, ranks: int) -> list[Tensor]:
    """The same on every rank."""
    return [answer] * ranks


def own_gradient(parts: Parts, name: str) -> list[Tensor]:
    """What each rank computes of a gradient from its own operands."""
    operands = zip(parts["x"], parts["weight"], parts["grad_out"], strict=True)
    return [own_gradients(*one)[name] for one in operands]


def not_summed(name: str, own: list[Tensor], made: Pass) -> str:
    """Why each rank has its own part alone, by what was called."""
    missing = f"each rank has its own part of {name} alone: the all-reduce is missing"
    return {"": missing, "all_reduce": DROPPED, "start_all_reduce": EARLY}[made.communication(own[0].numel())]


def summed_wrongly(name: str, own: list[Tensor], made: Pass, plus: Tensor | float = 0) -> Candidates:
    """Where the sum of the ranks' own is asked for, with `plus`, as long as the last dimension, added afterwards."""
    ranks, total = len(own), torch.stack(own).sum(0)
    if ranks == 1:
        return
    yield not_summed(name, own, made), [one + plus for one in own]
    sum_of = f"{name} is the sum of the ranks' parts"
    yield f"{sum_of}, not their mean", alike(total / ranks + plus, ranks)
    yield f"{sum_of}, not the largest of them", alike(torch.stack(own).amax(0) + plus, ranks)
    yield f"{name} is added up twice", alike(ranks * total + plus, ranks)
    yield f"{name} is rank 0's part, on all ranks", alike(own[0] + plus, ranks)
    beside = f"the ranks' parts of {name} are put side by side; they are the terms of a sum"
    scattered = f"reduce_scatter leaves each rank a part of the sum; the whole {name} is asked for, on all"
    yield beside, alike(torch.stack(own), ranks)
    for dim in range(total.ndim):
        for parts in (own, [one + plus for one in own]):
            yield beside, alike(torch.cat(parts, dim), ranks)
        if total.shape[dim] % ranks == 0:
            yield scattered, list(total.chunk(ranks, dim))
            yield scattered, list((total + plus).chunk(ranks, dim))


def local_wrongly(name: str, own: list[Tensor], why: str, whole: bool = False) -> Candidates:
    """Where each rank's own is asked for; `why` says of what it is. whole: the same on all ranks, and no part."""
    ranks, total = len(own), torch.stack(own).sum(0)
    if ranks == 1:
        return
    yield f"all ranks' {name} are added up; {why}", alike(total, ranks)
    yield f"all ranks' {name} are added up twice; {why}", alike(total * ranks, ranks)
    yield f"all ranks' {name} are averaged; {why}", alike(total / ranks, ranks)
    yield f"{name} is divided by the number of ranks; {why}", [one / ranks for one in own]
    for dim in range(total.ndim):
        yield f"all ranks' {name} are gathered; each returns that of its own part", alike(torch.cat(own, dim), ranks)
        if len(own[0].chunk(ranks, dim)) == ranks:
            cut = (
                "cut into parts, and is whole on every rank"
                if whole
                else "cut once more, and is a rank's part as it is"
            )
            yield f"{name} is {cut}", [one.chunk(ranks, dim)[rank] for rank, one in enumerate(own)]
    for by in range(1, ranks):
        yield f"{name} is that of another rank", own[by:] + own[:by]
    for rank in (0, ranks - 1):
        alone = [one if r == rank else torch.zeros_like(one) for r, one in enumerate(own)]
        yield f"{name} is right on one rank alone, and 0 on the others; {why}", alone


def other_calls(layers: list[Layer], layer: Layer, call: int, name: str, summed: bool) -> Candidates:
    """Gradients that belong to another call of forward or of backward."""
    parts = layer.local(call)
    ranks = len(parts["x"])
    if call:
        before, now = (layer.gradients[i][name] for i in (call - 1, call))
        yield "it is what backward returned before: each call has its own grad_out", before
        added = [one + other for one, other in zip(before, now, strict=True)]
        yield "backward adds to what it returned before; each call begins anew", added
    if name == "grad_bias":
        return
    kept = ("x", "weight")
    others = [{key: one.operands[key] for key in kept} for one in layers if one is not layer]
    of_one = [{key: alike(one[key][r], ranks) for key in kept} for one in (parts, *others) for r in range(ranks)]
    for taken in (*others, *of_one):
        own = own_gradient(parts | taken, name)
        yield OTHER, alike(torch.stack(own).sum(0), ranks) if summed else own
