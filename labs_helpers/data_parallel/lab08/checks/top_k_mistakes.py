"""Top-k with error feedback in float64, step by step: the right numbers, and what common mistakes give."""

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

    steps: of each step each rank's gradients. The settings are the places where mistakes are made, functions of a
    rank's state x: flat, its gradients; old, its residual; whole, both added; sent, what it sends, (n,) with zeros;
    all, what each rank sends; mean.
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
    """Yield a sentence and what its mistake leaves, worked out when it is needed."""
    p, n = len(steps[0]), len(next(iter(steps[0].values())))

    def made(sentence, number=k, **settings):
        return sentence, lambda: run(steps, number, **settings)

    yield made("the sum, not the mean: a division by the number of ranks is missing", divisor=1)
    if p > 2:
        yield made("divided by the number of the other ranks; this one counts as well", divisor=p - 1)
    yield made("divided by the number of ranks twice", divisor=p * p)
    for constant in (2, 3, 4):
        yield made(f"a division by {constant}, whatever the size of the group is", divisor=constant)
    yield made("the gradients are divided, and the residual is not", added=lambda x: x.flat / p + x.old, divisor=1)

    yield made("values and positions stand in different orders: value i belongs to position i", combine=_other_order)
    yield made("divided by the number of ranks that have sent the entry; who has not counts as 0", combine=_users)
    last = "where several ranks send one entry the last of them counts: flat[places] = values overwrites, index_add_"
    yield made(f"{last} adds up", combine=_last)
    yield made("what other ranks send is not used", combine=lambda x: x.sent)
    yield made("what other ranks send is not used", combine=lambda x: x.sent * p)
    yield made("all ranks have rank 0's entries", combine=lambda x: x.all[0] * p)
    yield made("one buffer is received into for all ranks: the last rank's is in it", combine=lambda x: x.all[-1] * p)
    yield made("what this rank itself sends is not added", combine=lambda x: sum(x.all) - x.sent)
    yield made("the positions of rank 0 are taken for those of all ranks", combine=lambda x: _put(x, x.all[0]))
    in_turn = "values are added up entry by entry; they stand at other positions on each rank"
    yield made(in_turn, combine=lambda x: _put(x, x.sent))
    yield made("of all that was sent only k entries are kept", combine=_largest_k)
    yield made("values are rounded to bfloat16 on the way", combine=lambda x: sum(y.bfloat16().double() for y in x.all))

    yield made("the residual is not added before the largest are chosen", added=lambda x: x.flat)
    yield made("the residual is subtracted", added=lambda x: x.flat - x.old)
    yield made("the largest are chosen from the gradients alone, without the residual", size=lambda x: x.flat.abs())
    yield made("the largest values are chosen, not the largest magnitudes: abs()", size=lambda x: x.whole)
    yield made("the smallest are sent", size=lambda x: -x.whole.abs())
    yield made("values are cut to whole numbers", values=lambda x: x.whole.trunc())
    for more in ({}, {"left": lambda x: x.whole - x.sent}):
        yield made("the gradients alone are sent, without the residual", values=lambda x: x.flat, **more)
        yield made("magnitudes are sent: the sign is lost", values=lambda x: x.whole.abs(), **more)
    yield made("one entry less is sent", max(1, k - 1))
    yield made("one entry more is sent", min(n, k + 1))

    lost = "residual stays 0, and what is not sent is lost: it is cleared, or never written"
    yield made(f"{lost} (`residual = …` names a new tensor)", left=lambda x: 0 * x.whole)
    yield made("the residual keeps what was sent as well", left=lambda x: x.whole)
    yield made("the residual holds what was sent, not what was left", left=lambda x: x.sent)
    own = "a rank keeps what it has not sent itself"
    yield made(f"the residual is what the mean lacks; {own}", left=lambda x: x.whole - x.mean)
    cleared = f"the residual is cleared where any rank has sent; {own}"
    yield made(cleared, left=lambda x: torch.where(x.mean != 0, 0, x.whole))
    this_step = "the residual holds what is left of this step's gradients alone"
    yield made(this_step, left=lambda x: torch.where(x.sent != 0, 0, x.flat))
    yield made(this_step, left=lambda x: x.flat - x.sent)
    twice = "what is left is added to a residual that is in it already"
    yield made(twice, left=lambda x: x.old + x.whole - x.sent)
    yield made(twice, left=lambda x: torch.where(x.sent != 0, 0, x.old + x.whole))

    yield made("flat is not written: `flat = …` names a new tensor, flat.copy_(…) writes", keeps=lambda x: x.flat)
    yield made("the mean is added to the gradients that are still in flat", keeps=lambda x: x.mean + x.flat)
    yield made("the mean is added to the gradients that are still in flat", keeps=lambda x: x.mean + x.flat / p)
    yield made("flat keeps its gradients where nobody sends", keeps=lambda x: torch.where(x.mean != 0, x.mean, x.flat))


def _places(sent, k):
    """Where the entries are that are sent, the largest first."""
    return sent.abs().topk(k).indices


def _put(x, sent):
    """Every rank's values, the largest first, at the places of one rank."""
    values = sum(one[_places(one, x.k)] for one in x.all)
    return torch.zeros_like(sent).index_put((_places(sent, x.k),), values)


def _other_order(x):
    """Values in the order of the vector, places in that of their size."""
    pairs = [(one, _places(one, x.k)) for one in x.all]
    return sum(torch.zeros_like(one).index_put((at,), one[at.sort().values]) for one, at in pairs)


def _last(x):
    """The last rank that has sent an entry counts."""
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
