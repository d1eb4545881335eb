"""The results that common mistakes give in exercises 7 and 8, with one tensor per rank."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import OWN, Cut, Layer, Parts
from labs_helpers.tensor_parallel.lab07.checks.passes import Pass
from labs_helpers.tensor_parallel.lab07.checks.tensor_errors import STATE

EARLY = "start_all_reduce returns a request, and the tensor holds the sum only after its wait(): wait, then use it"
OTHER = f"backward uses the tensors of another call: {STATE}"
DROPPED = "the result of all_reduce is not used; it returns the sum and does not change its argument"
OUT_FOR_GRAD = "it is computed from out instead of grad_out"
OUT_FOR_X = "it is computed from out instead of x; if forward reassigns x, backward sees the new x"
MEAN = "it is the mean over the tokens; sum their contributions"
BOTH = "sum over batch and length"
TOKENS = "grad_bias sums over batch and length, the first two dimensions"
SAMPLE = "it contains only one sample of the batch"
POSITION = "it contains only one position of each sample"
ANEW = "reshape does not transpose; use flatten(0, 1).T"
ORDER = "the tokens of x and of grad_out are in different orders; use flatten(0, 1) for both"
STEPS: dict[str, tuple[tuple[str, Callable[..., Tensor]], ...]] = {  # functions of a rank's x, weight, grad_out, out
    "out": (("weight already has the shape (in, out): x @ weight, without .T", lambda x, w, g, out: x @ w.T),),
    "grad_x": (
        ("grad_x is transposed; it has the shape of x", lambda x, w, g, out: (g @ w.T).mT),
        ("transpose weight for grad_x: weight.T", lambda x, w, g, out: g @ w),
        (OUT_FOR_GRAD, lambda x, w, g, out: out @ w.T),
    ),
    "grad_weight": (
        ("grad_weight is transposed; it has the shape of weight", lambda x, w, g, out: _weight(g, x)),
        (OUT_FOR_X, lambda x, w, g, out: _weight(out, g)),
        (OUT_FOR_X, lambda x, w, g, out: _weight(x @ w, g)),
        (OUT_FOR_GRAD, lambda x, w, g, out: _weight(x, out)),
        (f"{BOTH}; this sums only over length", lambda x, w, g, out: x.mT @ g),
        (f"{BOTH}; this sums only over batch", lambda x, w, g, out: x.transpose(0, 1).mT @ g.transpose(0, 1)),
        *((SAMPLE, lambda x, w, g, out, i=i: x[i].T @ g[i]) for i in (0, -1)),
        *((POSITION, lambda x, w, g, out, i=i: x[:, i].T @ g[:, i]) for i in (0, -1)),
        (ANEW, lambda x, w, g, out: x.reshape(x.shape[-1], -1) @ g.flatten(0, 1)),
        (ORDER, lambda x, w, g, out: x.transpose(0, 2).reshape(x.shape[-1], -1) @ g.flatten(0, 1)),
    ),
    "grad_bias": (
        (f"{TOKENS}; this sums only over batch", lambda x, w, g, out: g.sum(0)),
        (f"{TOKENS}; this sums only over length", lambda x, w, g, out: g.sum(1)),
        *((f"{TOKENS}, not over the features", lambda x, w, g, out, d=d: g.sum(d)) for d in ((0, 1, 2), (-1,), (0, 2))),
        (f"{TOKENS}; drop them, without keepdim", lambda x, w, g, out: g.sum((0, 1), keepdim=True)),
        (f"{TOKENS}; this is grad_out itself", lambda x, w, g, out: g),
        *((SAMPLE, lambda x, w, g, out, i=i: g[i].sum(0)) for i in (0, -1)),
        *((POSITION, lambda x, w, g, out, i=i: g[:, i].sum(0)) for i in (0, -1)),
        (
            "grad_bias is 1 everywhere; it is the sum of grad_out over the tokens",
            lambda x, w, g, out: torch.ones_like(g[0, 0]),
        ),
        (OUT_FOR_GRAD, lambda x, w, g, out: out.sum((0, 1))),
    ),
}


def mistakes(name: str, layers: list[Layer], layer: Layer, call: int, cut: Cut, made: Pass, why: str) -> Candidates:
    """Yield mistakes in one result, "out" or a gradient. layers: all layers of all groups. made: rank 0's Pass.

    why: the reason why each rank keeps its own result; '' for a result that is the sum over the ranks.
    """
    parts, right = layer.operands[call], layer.results[call]
    own, ranks, summed = _own(name, parts), len(right[name]), not why
    plus = parts["bias"] if name == "out" else [torch.zeros(())] * ranks

    def whole(answer: list[Tensor]) -> list[Tensor]:
        """Turn what each rank computed alone into final results."""
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
        yield "it repeats the result of the previous call of backward; each call has its own grad_out", before
        yield (
            "backward adds to its previous result; each call has to start from zero",
            [a + b for a, b in zip(before, now, strict=True)],
        )
    if name != "grad_bias":
        others = [one.operands[call] for one in layers if one is not layer]
        for one in others:
            yield OTHER, whole(_own(name, one | {"grad_out": parts["grad_out"]}))


def _own(name: str, parts: Parts) -> list[Tensor]:
    """Return what each rank computes for a result from its own operands, without bias."""
    return [OWN[name](*one) for one in zip(parts["x"], parts["weight"], parts["grad_out"], strict=True)]


def _weight(x: Tensor, grad_out: Tensor) -> Tensor:
    return x.flatten(0, 1).T @ grad_out.flatten(0, 1)


def _alike(answer: list[Tensor]) -> list[Tensor]:
    """Return the sum, on every rank."""
    return [torch.stack(answer).sum(0)] * len(answer)


def _step_mistakes(name: str, parts: Parts, out: list[Tensor], own: list[Tensor]) -> Candidates:
    """Yield mistakes in what each rank computes alone, before any sum over the ranks."""
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
    if whole or name in ("out", "grad_x"):  # otherwise the results are summed
        what = "every rank already holds the whole of it" if whole else "each rank holds a different part of it"
        sentence = f"{operand} is added up over the ranks before the product, although {what}"
        yield sentence, _own(name, parts | {operand: _alike(parts[operand])})


def _bias_mistakes(base: list[Tensor], bias: list[Tensor], summed: bool) -> Candidates:
    ranks = len(base)

    def plus(times: Callable[[int], float], other: int = 0) -> list[Tensor]:
        return [one + times(r) * bias[(r + other) % ranks] for r, one in enumerate(base)]

    yield "bias is not added", plus(lambda r: 0)
    yield "bias is added twice", plus(lambda r: 2)
    yield "bias is subtracted", plus(lambda r: -1)
    yield "bias is divided by the number of ranks, but added only once", plus(lambda r: 1 / ranks)
    for alone in (0, ranks - 1):
        yield "only one rank adds the bias", plus(lambda r, alone=alone: r == alone)
    if summed:
        yield "bias is added once per rank; add it to the sum, after the all-reduce", plus(lambda r: ranks)
        return
    for by in range(1, ranks):
        yield "bias comes from another rank", plus(lambda r: 1, by)
    yield "bias comes from another rank", [one + bias[0] for one in base]


def _not_summed(name: str, own: list[Tensor], made: Pass) -> str:
    """Explain, from the collectives called, why each rank returned only its own term."""
    missing = f"each rank returns only its own term of {name}; the all-reduce is missing"
    return {"": missing, "all_reduce": DROPPED, "start_all_reduce": EARLY}[made.communication(own[0].numel())]


def _summed_wrongly(name: str, own: list[Tensor], plus: list[Tensor], made: Pass) -> Candidates:
    """Yield mistakes in a result that is the sum over the ranks, with `plus` added afterwards."""
    ranks, more, total = len(own), plus[0], torch.stack(own).sum(0)
    yield _not_summed(name, own, made), [one + more for one in own]
    sum_of = f"{name} is the sum of the ranks' terms"
    yield f"{sum_of}, not their mean", [total / ranks + more] * ranks
    yield f"{sum_of}, not their maximum", [torch.stack(own).amax(0) + more] * ranks
    yield f"{name} is summed twice", [ranks * total + more] * ranks
    yield f"every rank returns rank 0's term of {name}", [own[0] + more] * ranks
    beside = f"the ranks' terms of {name} are concatenated; add them up"
    scattered = f"reduce_scatter leaves each rank a part of the sum; every rank has to return the whole {name}"
    yield beside, [torch.stack(own)] * ranks
    for dim in range(total.ndim):
        for parts in (own, [one + more for one in own]):
            yield beside, [torch.cat(parts, dim)] * ranks
        if total.shape[dim] % ranks == 0:
            yield scattered, list(total.chunk(ranks, dim))
            yield scattered, list((total + more).chunk(ranks, dim))


def _local_wrongly(name: str, own: list[Tensor], plus: list[Tensor], why: str) -> Candidates:
    """Yield mistakes in a result that each rank keeps to itself; `why` gives the reason."""
    ranks, right = len(own), [one + more for one, more in zip(own, plus, strict=True)]
    added = f"it is the sum of all ranks' {name}; {why}"
    for total in (_alike(right), *([one + more for one in _alike(own)] for more in (torch.zeros(()), *plus))):
        yield added, total
    yield added, [one + more for one, more in zip(_alike(own), plus, strict=True)]
    yield f"it is twice the sum of all ranks' {name}; {why}", [ranks * one for one in _alike(right)]
    yield f"it is the mean of all ranks' {name}; {why}", [one / ranks for one in _alike(right)]
    yield f"{name} is divided by the number of ranks; {why}", [one / ranks for one in right]
    for dim in range(right[0].ndim):
        gathered = f"it joins all ranks' {name}; each rank returns only its own"
        yield gathered, [torch.cat(right, dim)] * ranks
        if len(right[0].chunk(ranks, dim)) == ranks:
            cut_more = f"{name} is split into parts a second time; {why}"
            yield cut_more, [one.chunk(ranks, dim)[rank] for rank, one in enumerate(right)]
    for by in range(1, ranks):
        yield f"it is another rank's {name}", right[by:] + right[:by]
    for rank in (0, ranks - 1):
        alone = [one if r == rank else torch.zeros_like(one) for r, one in enumerate(right)]
        yield f"{name} is right on only one rank, and 0 on the others; {why}", alone
