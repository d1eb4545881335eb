"""Top-k with error feedback in float64, step by step: the right numbers, and what common mistakes give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Outcome(NamedTuple):
    """After a step: the mean on each rank, and each rank's residual."""

    flat: list[Tensor]
    residual: list[Tensor]


def run(
    steps: Sequence[Sequence[Tensor]],
    k: int,
    *,
    added: Callable = lambda flat, residual: flat + residual,
    size: Callable = lambda corrected, flat: corrected.abs(),
    sent: Callable = lambda corrected, flat: corrected,
    left: Callable = lambda corrected, flat, sent, mean, old: torch.where(sent != 0, 0, corrected),
    divisor: float | None = None,
    combine: Callable = lambda sent, own, k: sum(sent),
    keeps: Callable = lambda mean, flat: mean,
) -> list[Outcome]:
    """steps: of each step each rank's gradients. The settings are the places where mistakes are made."""
    p, outcomes = len(steps[0]), []
    residuals = [torch.zeros_like(one) for one in steps[0]]
    for flats in steps:
        corrected = [added(flat, old) for flat, old in zip(flats, residuals, strict=True)]
        messages = []
        for whole, flat in zip(corrected, flats, strict=True):
            places = size(whole, flat).topk(k).indices
            message = torch.zeros_like(whole)
            message[places] = sent(whole, flat)[places]
            messages.append(message)
        means = [combine(messages, own, k) / (divisor or p) for own in range(p)]
        residuals = [left(*of_rank) for of_rank in zip(corrected, flats, messages, means, residuals, strict=True)]
        outcomes.append(Outcome([keeps(*both) for both in zip(means, flats, strict=True)], residuals))
    return outcomes


def _last(messages, own, k):
    """The last rank that has sent an entry counts."""
    result = torch.zeros_like(messages[0])
    for one in messages:
        result = torch.where(one != 0, one, result)
    return result


def _users(messages, own, k):
    return sum(messages) / sum((one != 0).double() for one in messages).clamp(min=1) * len(messages)


def _in_order_sent(messages, k):
    """Of each rank its k entries, and their places, the largest first."""
    places = [one.abs().topk(k).indices for one in messages]
    return [one[there] for one, there in zip(messages, places, strict=True)], places


def _other_order(messages, own, k):
    """Values in the order of the vector, places in that of their size."""
    _, places = _in_order_sent(messages, k)
    return sum(
        torch.zeros_like(one).index_put((there,), one[there.sort().values])
        for one, there in zip(messages, places, strict=True)
    )


def _at_first(messages, own, k):
    values, places = _in_order_sent(messages, k)
    return torch.zeros_like(messages[0]).index_put((places[0],), sum(values))


def _in_turn(messages, own, k):
    values, places = _in_order_sent(messages, k)
    return torch.zeros_like(messages[0]).index_put((places[own],), sum(values))


def _largest(messages, own, k):
    sent = torch.stack(messages)
    return torch.where(sent != 0, sent, -torch.inf).amax(0).nan_to_num(neginf=0.0)


def _largest_k(messages, own, k):
    whole = sum(messages)
    places = whole.abs().topk(k).indices
    return torch.zeros_like(whole).index_put((places,), whole[places])


def mistakes(steps, k) -> Iterator[tuple[str, list[Outcome]]]:
    """(sentence, the outcomes)"""
    p = len(steps[0])

    def made(sentence, **settings):
        return sentence, run(steps, k, **settings)

    zero = torch.zeros_like

    def difference(corrected, flat, sent, mean, old):
        return corrected - sent

    yield made("the sum, not the mean: a division by the number of ranks is missing", divisor=1)
    if p > 2:
        yield made("divided by the number of the other ranks; this one counts as well", divisor=p - 1)
    yield made("divided by the number of ranks twice", divisor=p * p)
    yield made("divided by k", divisor=k)
    yield made("values and positions stand in different orders: value i belongs to position i", combine=_other_order)
    yield made("divided by the number of ranks that have sent the entry; who has not counts as 0", combine=_users)
    yield made(
        (
            "where several ranks send one entry the last of them counts: flat[places] = values "
            "overwrites, index_add_ adds up"
        ),
        combine=_last,
    )
    yield made("what other ranks send is not used", combine=lambda messages, own, k: messages[own])
    yield made("what other ranks send is not used", combine=lambda messages, own, k: messages[own] * p)
    yield made("all ranks have rank 0's entries", combine=lambda messages, own, k: messages[0] * p)
    yield made("the residual is not added before the largest are chosen", added=lambda flat, residual: flat)
    yield made("the residual is subtracted", added=lambda flat, residual: flat - residual)
    yield made(
        "the largest are chosen from the gradients alone, without the residual", size=lambda corrected, flat: flat.abs()
    )
    yield made("the gradients alone are sent, without the residual", sent=lambda corrected, flat: flat)
    yield made("the gradients alone are sent, without the residual", sent=lambda corrected, flat: flat, left=difference)
    yield made(
        "the largest values are chosen, not the largest magnitudes: abs()", size=lambda corrected, flat: corrected
    )
    yield made("magnitudes are sent: the sign is lost", sent=lambda corrected, flat: corrected.abs())
    yield made("magnitudes are sent: the sign is lost", sent=lambda corrected, flat: corrected.abs(), left=difference)
    yield made("the smallest are sent", size=lambda corrected, flat: -corrected.abs())
    yield made("the residual keeps what was sent as well", left=lambda corrected, *_: corrected)
    yield made("the residual holds what was sent, not what was left", left=lambda corrected, flat, sent, *_: sent)
    yield made(
        "the residual is what the mean lacks; a rank keeps what it has not sent itself",
        left=lambda corrected, flat, sent, mean, old: corrected - mean,
    )
    yield made(
        "the residual holds what is left of this step's gradients alone",
        left=lambda corrected, flat, sent, mean, old: flat - torch.where(sent != 0, flat, 0),
    )
    yield made(
        "the residual holds what is left of this step's gradients alone",
        left=lambda corrected, flat, sent, mean, old: flat - sent,
    )
    yield made(
        "what is left is added to a residual that is in it already",
        left=lambda corrected, flat, sent, mean, old: old + corrected - sent,
    )
    yield made(
        "flat is not written: `flat = …` names a new tensor, flat.copy_(…) writes", keeps=lambda mean, flat: flat
    )
    yield made("the mean is added to the gradients that are still in flat", keeps=lambda mean, flat: flat + mean)
    yield made(
        "flat keeps its own gradients where nobody has sent anything",
        keeps=lambda mean, flat: torch.where(mean != 0, mean, flat),
    )
    yield made(
        "the residual is divided by the number of ranks",
        left=lambda corrected, flat, sent, mean, old: torch.where(sent != 0, 0, corrected) / p,
    )
    yield made(
        "what is left is added to a residual that is in it already",
        left=lambda corrected, flat, sent, mean, old: torch.where(sent != 0, 0, old + corrected),
    )
    yield made("the mean is added to the gradients that are still in flat", keeps=lambda mean, flat: mean + flat / p)
    yield made(
        "what this rank itself sends is not added", combine=lambda messages, own, k: sum(messages) - messages[own]
    )
    yield made(
        "divided before the residual is added, which is not divided", added=lambda flat, old: flat / p + old, divisor=1
    )
    yield made("the positions of rank 0 are taken for those of all ranks", combine=_at_first)
    yield made("values are added up entry by entry; they stand at other positions on each rank", combine=_in_turn)
    yield made("the largest of what is sent, not the sum", combine=_largest)
    yield made(
        "one buffer is received into for all ranks: the last rank's is in it", combine=lambda m, own, k: m[-1] * p
    )
    yield made(
        "the residual is cleared where any rank has sent; a rank keeps what it has not sent itself",
        left=lambda corrected, flat, sent, mean, old: torch.where(mean != 0, 0, corrected),
    )
    yield made("of all that was sent only k entries are kept", combine=_largest_k)
    yield made(
        "values are rounded to bfloat16 on the way", combine=lambda m, own, k: sum(x.bfloat16().double() for x in m)
    )
    if p > 1 and k // p != k:
        yield "k entries are shared by the ranks; each sends k", run(steps, max(1, k // p))
    for constant in {2, 3, 4} - {p}:
        yield made(f"a division by {constant}, whatever the size of the group is", divisor=constant)
    if k > 1:
        yield "one entry less is sent", run(steps, k - 1)
    if k < len(steps[0][0]):
        yield "one entry more is sent", run(steps, k + 1)
    yield made("values are cut to whole numbers", sent=lambda corrected, flat: corrected.trunc())
    lost = (
        "residual stays 0, and what is not sent is lost: it is cleared, or never written "
        "(`residual = …` names a new tensor)"
    )
    yield made(lost, left=lambda corrected, *_: zero(corrected))
