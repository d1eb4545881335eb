"""Top-k with error feedback in float64, step by step: the right numbers, and what common mistakes give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

Tree = Mapping[int, Mapping[int, Mapping[str, Tensor]]]  # [step][rank]["flat" or "residual"]


def run(
    steps: Sequence[Mapping[int, Tensor]],
    k: int,
    *,
    added: Callable = lambda flat, residual: flat + residual,
    size: Callable = lambda corrected, flat: corrected.abs(),
    sent: Callable = lambda corrected, flat: corrected,
    left: Callable = lambda corrected, flat, sent, mean, old: torch.where(sent != 0, 0, corrected),
    divisor: float | None = None,
    combine: Callable = lambda sent, own, k: sum(sent),
    keeps: Callable = lambda mean, flat: mean,
) -> Tree:
    """Return flat and residual of each rank after each step, counted from 1.

    steps: of each step each rank's gradients. The settings are the places where mistakes are made.
    """
    residuals, tree = {rank: torch.zeros_like(one) for rank, one in steps[0].items()}, {}
    for number, flats in enumerate(steps, 1):
        corrected = {rank: added(flat, residuals[rank]) for rank, flat in flats.items()}
        messages = []
        for rank, flat in flats.items():
            places = size(corrected[rank], flat).topk(k).indices
            messages.append(torch.zeros_like(flat))
            messages[-1][places] = sent(corrected[rank], flat)[places]
        tree[number] = {}
        for place, (rank, flat) in enumerate(flats.items()):
            mean = combine(messages, place, k) / (divisor or len(flats))
            residuals[rank] = left(corrected[rank], flat, messages[place], mean, residuals[rank])
            tree[number][rank] = {"flat": keeps(mean, flat), "residual": residuals[rank]}
    return tree


def mistakes(steps, k) -> Iterator[tuple[str, Callable[[], Tree]]]:
    """Yield a sentence and what its mistake leaves, worked out when it is needed."""
    p = len(steps[0])

    def made(sentence, number=k, **settings):
        return sentence, lambda: run(steps, number, **settings)

    def of_sent(corrected, flat, sent, mean, old):
        return corrected - sent

    yield made("the sum, not the mean: a division by the number of ranks is missing", divisor=1)
    if p > 2:
        yield made("divided by the number of the other ranks; this one counts as well", divisor=p - 1)
    yield made("divided by the number of ranks twice", divisor=p * p)
    yield made("divided by k", divisor=k)
    for constant in (2, 3, 4):
        yield made(f"a division by {constant}, whatever the size of the group is", divisor=constant)
    early = "divided before the residual is added, which is not divided"
    yield made(early, added=lambda flat, old: flat / p + old, divisor=1)

    yield made("values and positions stand in different orders: value i belongs to position i", combine=_other_order)
    yield made("divided by the number of ranks that have sent the entry; who has not counts as 0", combine=_users)
    last = "where several ranks send one entry the last of them counts: flat[places] = values overwrites, index_add_"
    yield made(f"{last} adds up", combine=_last)
    for factor in (1, p):
        unused = "what other ranks send is not used"
        yield made(unused, combine=lambda sent, own, k, factor=factor: sent[own] * factor)
    yield made("all ranks have rank 0's entries", combine=lambda sent, own, k: sent[0] * p)
    one_buffer = "one buffer is received into for all ranks: the last rank's is in it"
    yield made(one_buffer, combine=lambda sent, own, k: sent[-1] * p)
    yield made("what this rank itself sends is not added", combine=lambda sent, own, k: sum(sent) - sent[own])
    yield made("the positions of rank 0 are taken for those of all ranks", combine=lambda s, own, k: _at(s, 0, k))
    in_turn = "values are added up entry by entry; they stand at other positions on each rank"
    yield made(in_turn, combine=_at)
    yield made("the largest of what is sent, not the sum", combine=_largest)
    yield made("of all that was sent only k entries are kept", combine=_largest_k)
    rounded = "values are rounded to bfloat16 on the way"
    yield made(rounded, combine=lambda sent, own, k: sum(one.bfloat16().double() for one in sent))

    yield made("the residual is not added before the largest are chosen", added=lambda flat, old: flat)
    yield made("the residual is subtracted", added=lambda flat, old: flat - old)
    alone = "the largest are chosen from the gradients alone, without the residual"
    yield made(alone, size=lambda corrected, flat: flat.abs())
    yield made(
        "the largest values are chosen, not the largest magnitudes: abs()", size=lambda corrected, flat: corrected
    )
    yield made("the smallest are sent", size=lambda corrected, flat: -corrected.abs())
    yield made("values are cut to whole numbers", sent=lambda corrected, flat: corrected.trunc())
    for settings in ({}, {"left": of_sent}):
        without = "the gradients alone are sent, without the residual"
        yield made(without, sent=lambda corrected, flat: flat, **settings)
        sign = "magnitudes are sent: the sign is lost"
        yield made(sign, sent=lambda corrected, flat: corrected.abs(), **settings)
    yield made("k entries are shared by the ranks; each sends k", max(1, k // p))
    if k > 1:
        yield made("one entry less is sent", k - 1)
    if k < len(next(iter(steps[0].values()))):
        yield made("one entry more is sent", k + 1)

    lost = "residual stays 0, and what is not sent is lost: it is cleared, or never written"
    yield made(f"{lost} (`residual = …` names a new tensor)", left=lambda c, flat, sent, mean, old: 0 * c)
    yield made("the residual keeps what was sent as well", left=lambda c, flat, sent, mean, old: c)
    yield made("the residual holds what was sent, not what was left", left=lambda c, flat, sent, mean, old: sent)
    lacks = "the residual is what the mean lacks; a rank keeps what it has not sent itself"
    yield made(lacks, left=lambda c, flat, sent, mean, old: c - mean)
    any_rank = "the residual is cleared where any rank has sent; a rank keeps what it has not sent itself"
    yield made(any_rank, left=lambda c, flat, sent, mean, old: torch.where(mean != 0, 0, c))
    this_step = "the residual holds what is left of this step's gradients alone"
    yield made(this_step, left=lambda c, flat, sent, mean, old: torch.where(sent != 0, 0, flat))
    yield made(this_step, left=lambda c, flat, sent, mean, old: flat - sent)
    twice = "what is left is added to a residual that is in it already"
    yield made(twice, left=lambda c, flat, sent, mean, old: old + c - sent)
    yield made(twice, left=lambda c, flat, sent, mean, old: torch.where(sent != 0, 0, old + c))
    divided = "the residual is divided by the number of ranks"
    yield made(divided, left=lambda c, flat, sent, mean, old: torch.where(sent != 0, 0, c) / p)

    yield made(
        "flat is not written: `flat = …` names a new tensor, flat.copy_(…) writes", keeps=lambda mean, flat: flat
    )
    for share in (1, p):
        still = "the mean is added to the gradients that are still in flat"
        yield made(still, keeps=lambda mean, flat, share=share: mean + flat / share)
    nobody = "flat keeps its own gradients where nobody has sent anything"
    yield made(nobody, keeps=lambda mean, flat: torch.where(mean != 0, mean, flat))


def _last(messages, own, k):
    """The last rank that has sent an entry counts."""
    result = torch.zeros_like(messages[0])
    for one in messages:
        result = torch.where(one != 0, one, result)
    return result


def _users(messages, own, k):
    return sum(messages) / sum((one != 0).double() for one in messages).clamp(min=1) * len(messages)


def _other_order(messages, own, k):
    """Values in the order of the vector, places in that of their size."""
    places = [one.abs().topk(k).indices for one in messages]
    pairs = zip(messages, places, strict=True)
    return sum(torch.zeros_like(one).index_put((at,), one[at.sort().values]) for one, at in pairs)


def _at(messages, rank, k):
    """Every rank's values, the largest first, at the places of one rank."""
    values = sum(one[one.abs().topk(k).indices] for one in messages)
    return torch.zeros_like(messages[0]).index_put((messages[rank].abs().topk(k).indices,), values)


def _largest(messages, own, k):
    sent = torch.stack(messages)
    return torch.where(sent != 0, sent, -torch.inf).amax(0).nan_to_num(neginf=0.0)


def _largest_k(messages, own, k):
    whole = sum(messages)
    places = whole.abs().topk(k).indices
    return torch.zeros_like(whole).index_put((places,), whole[places])
