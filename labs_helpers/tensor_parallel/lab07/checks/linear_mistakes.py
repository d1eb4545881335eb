"""What common mistakes make of a layer's results: a candidate's answer is a tensor for each rank."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import OWN, Cut, Layer, Parts
from labs_helpers.tensor_parallel.lab07.checks.passes import Pass
from labs_helpers.tensor_parallel.lab07.checks.tensor_errors import STATE

EARLY = "until the wait() of start_all_reduce's request has returned, the tensor is not the sum: wait, then use it"
OTHER = f"backward works with tensors of another call: {STATE}"
DROPPED = "an all_reduce was called, but the sum is what it returns; the tensor that it takes stays as it is"
OUT_FOR_GRAD = "it is computed from out in place of grad_out"
OUT_FOR_X = "it is computed from out in place of x; if forward has an `x = …`, that x is what backward sees"
MEAN = "it is a mean over the tokens; their contributions add up"
BOTH = "batch and length are both to be summed up"
TOKENS = "grad_bias sums over batch and length, the first two dimensions"
SAMPLE = "one sample of the batch alone is in it"
POSITION = "one position of each sample alone is in it"
ANEW = "reshape turns nothing round, it only counts anew: flatten(0, 1).T"
ORDER = "the tokens of x come in another order than those of grad_out: flatten(0, 1) of both"
STEPS: dict[str, tuple[tuple[str, Callable[..., Tensor]], ...]] = {  # functions of a rank's x, weight, grad_out, out
    "out": (("weight is (in, out) of this rank as it is: x @ weight, without .T", lambda x, w, g, out: x @ w.T),),
    "grad_x": (
        ("grad_x is turned round: it is shaped as x", lambda x, w, g, out: (g @ w.T).mT),
        ("weight is to be turned round (.T) for grad_x", lambda x, w, g, out: g @ w),
        (OUT_FOR_GRAD, lambda x, w, g, out: out @ w.T),
    ),
    "grad_weight": (
        ("grad_weight is turned round (.T): it is shaped as weight", lambda x, w, g, out: _weight(g, x)),
        (OUT_FOR_X, lambda x, w, g, out: _weight(out, g)),
        (OUT_FOR_X, lambda x, w, g, out: _weight(x @ w, g)),
        (OUT_FOR_GRAD, lambda x, w, g, out: _weight(x, out)),
        (f"{BOTH}: only length is", lambda x, w, g, out: x.mT @ g),
        (f"{BOTH}: only batch is", lambda x, w, g, out: x.transpose(0, 1).mT @ g.transpose(0, 1)),
        *((SAMPLE, lambda x, w, g, out, i=i: x[i].T @ g[i]) for i in (0, -1)),
        *((POSITION, lambda x, w, g, out, i=i: x[:, i].T @ g[:, i]) for i in (0, -1)),
        (ANEW, lambda x, w, g, out: x.reshape(x.shape[-1], -1) @ g.flatten(0, 1)),
        (ORDER, lambda x, w, g, out: x.transpose(0, 2).reshape(x.shape[-1], -1) @ g.flatten(0, 1)),
    ),
    "grad_bias": (
        (f"{TOKENS}: only batch is", lambda x, w, g, out: g.sum(0)),
        (f"{TOKENS}: only length is", lambda x, w, g, out: g.sum(1)),
        *((f"{TOKENS}, not over the features", lambda x, w, g, out, d=d: g.sum(d)) for d in ((0, 1, 2), (-1,), (0, 2))),
        (f"{TOKENS}; keepdim leaves them there", lambda x, w, g, out: g.sum((0, 1), keepdim=True)),
        (f"{TOKENS}; it is grad_out as it came", lambda x, w, g, out: g),
        *((SAMPLE, lambda x, w, g, out, i=i: g[i].sum(0)) for i in (0, -1)),
        *((POSITION, lambda x, w, g, out, i=i: g[:, i].sum(0)) for i in (0, -1)),
        ("grad_bias is the sum of grad_out over the tokens, not 1", lambda x, w, g, out: torch.ones_like(g[0, 0])),
        (OUT_FOR_GRAD, lambda x, w, g, out: out.sum((0, 1))),
    ),
}


def mistakes(name: str, layers: list[Layer], layer: Layer, call: int, cut: Cut, made: Pass, why: str) -> Candidates:
    """Of a result, "out" or a gradient. layers: all that there are, of all groups. made: rank 0's Pass.

    why: what each rank's own is a part of; '' for a result that is the sum over the ranks.
    """
    parts, right = layer.operands[call], layer.results[call]
    own, ranks, summed = _own(name, parts), len(right[name]), not why
    plus = parts["bias"] if name == "out" else [torch.zeros(())] * ranks

    def whole(answer: list[Tensor]) -> list[Tensor]:
        """What becomes of the ranks' own."""
        return [one + more for one, more in zip(_alike(answer) if summed else answer, plus, strict=True)]

    if ranks > 1:
        yield from _summed_wrongly(name, own, plus, made) if summed else _local_wrongly(name, own, plus, why)
    for sentence, answer in (*_step_mistakes(name, parts, right["out"], own), *_added_before(name, parts, cut)):
        yield sentence, whole(answer)
        if summed and ranks > 1:
            yield f"{sentence}; and the all-reduce is missing", [a + b for a, b in zip(answer, plus, strict=True)]
    if name == "out":
        base = _alike(own) if summed else own
        yield from _bias_mistakes(base, parts["bias"], summed)
        if summed and ranks > 1:
            yield f"bias is not added; and {_not_summed(name, own, made)}", own
        return
    yield f"{name} has the wrong sign", [-one for one in right[name]]
    if call:
        before, now = layer.results[call - 1][name], right[name]
        yield "it is what backward returned before: each call has its own grad_out", before
        yield (
            "backward adds to what it returned before; each call begins anew",
            [a + b for a, b in zip(before, now, strict=True)],
        )
    if name != "grad_bias":
        others = [one.operands[call] for one in layers if one is not layer]
        for one in others:
            yield OTHER, whole(_own(name, one | {"grad_out": parts["grad_out"]}))


def _own(name: str, parts: Parts) -> list[Tensor]:
    """What each rank computes of a result from its own operands, without bias."""
    return [OWN[name](*one) for one in zip(parts["x"], parts["weight"], parts["grad_out"], strict=True)]


def _weight(x: Tensor, grad_out: Tensor) -> Tensor:
    return x.flatten(0, 1).T @ grad_out.flatten(0, 1)


def _alike(answer: list[Tensor]) -> list[Tensor]:
    """The sum, on every rank."""
    return [torch.stack(answer).sum(0)] * len(answer)


def _step_mistakes(name: str, parts: Parts, out: list[Tensor], own: list[Tensor]) -> Candidates:
    """Each answer is what the ranks compute for themselves, before anything is added up."""
    for sentence, step in STEPS[name]:
        with suppress(RuntimeError):  # shapes that do not fit
            operands = zip(parts["x"], parts["weight"], parts["grad_out"], out, strict=True)
            yield sentence, [step(*one) for one in operands]
    batch, length, _ = parts["grad_out"][0].shape
    for number in (batch * length, batch, length) if name in ("grad_weight", "grad_bias") else ():
        yield MEAN, [one / number for one in own]


def _added_before(name: str, parts: Parts, cut: Cut) -> Candidates:
    operand = "x" if name == "out" else "grad_out"
    whole = getattr(cut, operand) is None
    if whole or name in ("out", "grad_x"):  # else it is the results that are added up
        what = "it is the same whole on each" if whole else "each rank has another part of it"
        sentence = f"{operand} is added up over the ranks before the product, although {what}"
        yield sentence, _own(name, parts | {operand: _alike(parts[operand])})


def _bias_mistakes(base: list[Tensor], bias: list[Tensor], summed: bool) -> Candidates:
    ranks = len(base)

    def plus(times: Callable[[int], float], other: int = 0) -> list[Tensor]:
        return [one + times(r) * bias[(r + other) % ranks] for r, one in enumerate(base)]

    yield "bias is not added", plus(lambda r: 0)
    yield "bias is added twice", plus(lambda r: 2)
    yield "bias is subtracted", plus(lambda r: -1)
    yield "bias is divided by the ranks, but added once only", plus(lambda r: 1 / ranks)
    for alone in (0, ranks - 1):
        yield "bias is added on one rank alone", plus(lambda r, alone=alone: r == alone)
    if summed:
        yield "bias is added once per rank: add it to the sum, after the all-reduce", plus(lambda r: ranks)
        return
    for by in range(1, ranks):
        yield "bias is that of another rank", plus(lambda r: 1, by)
    yield "bias is that of another rank", [one + bias[0] for one in base]


def _not_summed(name: str, own: list[Tensor], made: Pass) -> str:
    """Why each rank has its own part alone, by what was called."""
    missing = f"each rank has its own part of {name} alone: the all-reduce is missing"
    return {"": missing, "all_reduce": DROPPED, "start_all_reduce": EARLY}[made.communication(own[0].numel())]


def _summed_wrongly(name: str, own: list[Tensor], plus: list[Tensor], made: Pass) -> Candidates:
    """Where the sum of the ranks' own is asked for, with `plus` added afterwards."""
    ranks, more, total = len(own), plus[0], torch.stack(own).sum(0)
    yield _not_summed(name, own, made), [one + more for one in own]
    sum_of = f"{name} is the sum of the ranks' parts"
    yield f"{sum_of}, not their mean", [total / ranks + more] * ranks
    yield f"{sum_of}, not the largest of them", [torch.stack(own).amax(0) + more] * ranks
    yield f"{name} is added up twice", [ranks * total + more] * ranks
    yield f"{name} is rank 0's part, on all ranks", [own[0] + more] * ranks
    beside = f"the ranks' parts of {name} are put side by side; they are the terms of a sum"
    scattered = f"reduce_scatter leaves each rank a part of the sum; the whole {name} is asked for, on all"
    yield beside, [torch.stack(own)] * ranks
    for dim in range(total.ndim):
        for parts in (own, [one + more for one in own]):
            yield beside, [torch.cat(parts, dim)] * ranks
        if total.shape[dim] % ranks == 0:
            yield scattered, list(total.chunk(ranks, dim))
            yield scattered, list((total + more).chunk(ranks, dim))


def _local_wrongly(name: str, own: list[Tensor], plus: list[Tensor], why: str) -> Candidates:
    """Where each rank's own is asked for; `why` says of what it is."""
    ranks, right = len(own), [one + more for one, more in zip(own, plus, strict=True)]
    added = f"all ranks' {name} are added up; {why}"
    for total in (_alike(right), *([one + more for one in _alike(own)] for more in (torch.zeros(()), *plus))):
        yield added, total
    yield added, [one + more for one, more in zip(_alike(own), plus, strict=True)]
    yield f"all ranks' {name} are added up twice; {why}", [ranks * one for one in _alike(right)]
    yield f"all ranks' {name} are averaged; {why}", [one / ranks for one in _alike(right)]
    yield f"{name} is divided by the number of ranks; {why}", [one / ranks for one in right]
    for dim in range(right[0].ndim):
        gathered = f"all ranks' {name} are gathered; each returns that of its own part"
        yield gathered, [torch.cat(right, dim)] * ranks
        if len(right[0].chunk(ranks, dim)) == ranks:
            cut_more = f"{name} is cut into parts once more; {why}"
            yield cut_more, [one.chunk(ranks, dim)[rank] for rank, one in enumerate(right)]
    for by in range(1, ranks):
        yield f"{name} is that of another rank", right[by:] + right[:by]
    for rank in (0, ranks - 1):
        alone = [one if r == rank else torch.zeros_like(one) for r, one in enumerate(right)]
        yield f"{name} is right on one rank alone, and 0 on the others; {why}", alone
