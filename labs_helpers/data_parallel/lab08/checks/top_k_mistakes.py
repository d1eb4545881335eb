"""Compute top-k with error feedback in float64, step by step: the right numbers, and those of common mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace

import torch
from torch import Tensor

Tree = Mapping[int, Mapping[int, Mapping[str, Tensor]]]  # [step][rank]["flat" or "residual"]


def run(
    steps: Sequence[Mapping[int, Tensor]],
    k: int,
    *,
    added: Callable = lambda x: x.flat + x.old,
    size: Callable = lambda x: x.whole.abs(),
    values: Callable = lambda x: x.whole,
    combine: Callable = lambda x: sum(x.all),
    divisor: float | None = None,
    left: Callable = lambda x: torch.where(x.sent != 0, 0, x.whole),
    keeps: Callable = lambda x: x.mean,
) -> Tree:
    """Return flat and residual of each rank after each step, counted from 1.

    steps: each rank's gradients, per step. The settings are the places for mistakes: functions of a rank's state x.
    flat: its gradients. old: its residual. whole: their sum. sent: the entries that it sends, (n,), zero elsewhere.
    all: the entries that each rank sends. mean: the mean of all.
    """
    residuals, tree = {rank: torch.zeros_like(one) for rank, one in steps[0].items()}, {}
    for number, flats in enumerate(steps, 1):
        ranks = {rank: SimpleNamespace(flat=flat, old=residuals[rank], k=k) for rank, flat in flats.items()}
        for x in ranks.values():
            x.whole = added(x)
            places = size(x).topk(k).indices
            x.sent = torch.zeros_like(x.flat)
            x.sent[places] = values(x)[places]
        for x in ranks.values():
            x.all = [one.sent for one in ranks.values()]
            x.mean = combine(x) / (divisor or len(flats))
        residuals = {rank: left(x) for rank, x in ranks.items()}
        tree[number] = {rank: {"flat": keeps(x), "residual": residuals[rank]} for rank, x in ranks.items()}
    return tree


def mistakes(steps, k) -> Iterator[tuple[str, Callable[[], Tree]]]:
    """Yield a sentence and a function that computes the result of its mistake."""
    p, n = len(steps[0]), len(next(iter(steps[0].values())))

    def made(sentence, number=k, **settings):
        return sentence, lambda: run(steps, number, **settings)

    yield made("the sum, not the mean: divide by the number of ranks", divisor=1)
    if p > 2:
        yield made("divided by the number of other ranks; count this rank too", divisor=p - 1)
    yield made("divided by the number of ranks twice", divisor=p * p)
    for constant in (2, 3, 4):
        yield made(f"divided by {constant}, whatever the size of the group", divisor=constant)
    yield made(
        "the gradients are divided by the number of ranks, but the residual is not",
        added=lambda x: x.flat / p + x.old,
        divisor=1,
    )

    yield made("values and positions are in different orders: value i belongs to position i", combine=_other_order)
    yield made("divided by the number of ranks that sent the entry; the other ranks count as 0", combine=_users)
    last = "if several ranks send an entry, only the last one counts: flat[places] = values overwrites, index_add_"
    yield made(f"{last} adds", combine=_last)
    yield made("the entries of other ranks are not used", combine=lambda x: x.sent)
    yield made("the entries of other ranks are not used", combine=lambda x: x.sent * p)
    yield made("all ranks use rank 0's entries", combine=lambda x: x.all[0] * p)
    yield made(
        "all ranks' entries are received into one buffer, which keeps the last rank's", combine=lambda x: x.all[-1] * p
    )
    yield made("this rank's own entries are not added", combine=lambda x: sum(x.all) - x.sent)
    yield made("rank 0's positions are used for all ranks", combine=lambda x: _put(x, x.all[0]))
    in_turn = "values are added entry by entry, but their positions differ from rank to rank"
    yield made(in_turn, combine=lambda x: _put(x, x.sent))
    yield made("only k of all the entries sent are kept", combine=_largest_k)
    yield made(
        "values are rounded to bfloat16 before they are sent",
        combine=lambda x: sum(y.bfloat16().double() for y in x.all),
    )

    yield made("the residual is not added before the largest entries are chosen", added=lambda x: x.flat)
    yield made("the residual is subtracted", added=lambda x: x.flat - x.old)
    yield made(
        "the largest entries are chosen from the gradients alone, without the residual", size=lambda x: x.flat.abs()
    )
    yield made("the largest values are chosen, not the largest magnitudes: abs()", size=lambda x: x.whole)
    yield made("the smallest entries are sent", size=lambda x: -x.whole.abs())
    yield made("values are cut to whole numbers", values=lambda x: x.whole.trunc())
    for more in ({}, {"left": lambda x: x.whole - x.sent}):
        yield made("only the gradients are sent, without the residual", values=lambda x: x.flat, **more)
        yield made("magnitudes are sent: the sign is lost", values=lambda x: x.whole.abs(), **more)
    yield made("one entry too few is sent", max(1, k - 1))
    yield made("one entry too many is sent", min(n, k + 1))

    lost = "residual stays 0, and the unsent values are lost: residual is cleared, or never written"
    yield made(f"{lost} (`residual = …` names a new tensor)", left=lambda x: 0 * x.whole)
    yield made("the residual keeps the sent values too", left=lambda x: x.whole)
    yield made("the residual holds the sent values, not the unsent ones", left=lambda x: x.sent)
    own = "keep the values that this rank has not sent"
    yield made(f"the residual is the difference from the mean; {own}", left=lambda x: x.whole - x.mean)
    cleared = f"the residual is cleared where any rank has sent; {own}"
    yield made(cleared, left=lambda x: torch.where(x.mean != 0, 0, x.whole))
    this_step = "the residual holds only the unsent part of this step's gradients"
    yield made(this_step, left=lambda x: torch.where(x.sent != 0, 0, x.flat))
    yield made(this_step, left=lambda x: x.flat - x.sent)
    twice = "the unsent values are added to the residual, but they already include it"
    yield made(twice, left=lambda x: x.old + x.whole - x.sent)
    yield made(twice, left=lambda x: torch.where(x.sent != 0, 0, x.old + x.whole))

    yield made("flat is not written: `flat = …` names a new tensor, flat.copy_(…) writes", keeps=lambda x: x.flat)
    yield made("the mean is added to the gradients that are still in flat", keeps=lambda x: x.mean + x.flat)
    yield made("the mean is added to the gradients that are still in flat", keeps=lambda x: x.mean + x.flat / p)
    yield made("flat keeps its gradients where no rank sends", keeps=lambda x: torch.where(x.mean != 0, x.mean, x.flat))


def _places(sent, k):
    """Return the positions of the sent entries, the largest entry first."""
    return sent.abs().topk(k).indices


def _put(x, sent):
    """Return the sum of every rank's values, the largest first, at the positions of one rank."""
    values = sum(one[_places(one, x.k)] for one in x.all)
    return torch.zeros_like(sent).index_put((_places(sent, x.k),), values)


def _other_order(x):
    """Combine values in the vector's order with positions in the order of magnitude."""
    pairs = [(one, _places(one, x.k)) for one in x.all]
    return sum(torch.zeros_like(one).index_put((at,), one[at.sort().values]) for one, at in pairs)


def _last(x):
    """Keep the entry of the last rank that sent it."""
    result = x.all[0]
    for one in x.all[1:]:
        result = torch.where(one != 0, one, result)
    return result


def _users(x):
    return sum(x.all) / sum((one != 0).double() for one in x.all).clamp(min=1) * len(x.all)


def _largest_k(x):
    whole = sum(x.all)
    places = _places(whole, x.k)
    return torch.zeros_like(whole).index_put((places,), whole[places])
