"""Attention over an int8 cache and its error bound: the right results, and those of common mistakes."""

from __future__ import annotations

import torch

from labs_helpers.course.verdict import Candidates


def _double(*tensors: torch.Tensor):
    return [tensor.cpu().double() for tensor in tensors]


def _attend(scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return torch.einsum("hl,hld->hd", scores.softmax(dim=1), values)


def right(q, k, k_scale, v, v_scale):
    """Return (o, its tolerance, bound), float64."""
    (_, L, D), dtype = k.shape, q.dtype
    q, k, k_scale, v, v_scale = _double(q, k, k_scale, v, v_scale)
    keys, values = k * k_scale[..., None], v * v_scale[..., None]
    scores, sizes = (torch.einsum("hd,hld->hl", a, b) / D**0.5 for a, b in ((q, keys), (q.abs(), keys.abs())))
    o, largest = _attend(scores, values), values.abs().amax(dim=(1, 2))
    of_score = (D + 8) * 2.0**-23 * sizes.amax(dim=1)
    of_sums = ((L + 8) * 2.0**-23 + 2 * of_score) * largest
    return o, torch.finfo(dtype).eps / 2 * o.abs() + of_sums[:, None], _bound(q, k_scale, values, v_scale)


def _bound(q, k_scale, values, v_scale, *, of_q=lambda q: q.abs().sum(dim=1), root=True, half_k=0.5, half_v=0.5,
           factor=2.0, minus=1.0, worst=torch.amax, of_v=lambda values: values.abs().amax(dim=(1, 2))):  # fmt: skip
    """Return the right bound of q, keys' scales and dequantized values; other settings make mistakes."""
    of_score = half_k * worst(k_scale, dim=1) * of_q(q) / (q.shape[1] ** 0.5 if root else 1)
    return half_v * worst(v_scale, dim=1) + ((factor * of_score).exp() - minus) * of_v(values)


def output_causes(q, k, k_scale, v, v_scale, block) -> Candidates:
    L, D = k.shape[1:]
    q, k, k_scale, v, v_scale = _double(q, k, k_scale, v, v_scale)
    keys, values = k * k_scale[..., None], v * v_scale[..., None]

    def scores(keys, q=q, root=D**0.5):
        return torch.einsum("hd,hld->hl", q, keys) / root

    true = scores(keys)
    yield "the keys are not scaled by k_scale", _attend(scores(k), values)
    yield "the values are not scaled by v_scale", _attend(true, v)
    yield "neither keys nor values are scaled", _attend(scores(k), v)
    yield "k_scale and v_scale are exchanged", _attend(scores(k * v_scale[..., None]), v * k_scale[..., None])
    yield "the values are scaled by k_scale", _attend(true, v * k_scale[..., None])
    yield "the keys are scaled by v_scale", _attend(scores(k * v_scale[..., None]), values)
    yield (
        "all positions get the first position's scales",
        _attend(scores(k * k_scale[:, :1, None]), v * v_scale[:, :1, None]),
    )
    yield (
        "every block gets the first block's scales",
        _attend(scores(k * k_scale[:, torch.arange(L) % block, None]), v * v_scale[:, torch.arange(L) % block, None]),
    )
    yield "every head gets head 0's scales", _attend(scores(k * k_scale[:1, :, None]), v * v_scale[:1, :, None])
    yield (
        "every head reads head 0's keys and values",
        _attend(scores(k[:1] * k_scale[..., None]), v[:1] * v_scale[..., None]),
    )
    yield "the scores are not divided by √D", _attend(scores(keys, root=1), values)
    yield "the scores are divided by D, not by √D", _attend(scores(keys, root=D), values)
    yield "the scores are multiplied by √D; divide", _attend(scores(keys, root=D**-0.5), values)
    yield (
        "the output is not divided by the sum of the weights",
        torch.einsum("hl,hld->hd", (true - true.amax(dim=1, keepdim=True)).exp(), values),
    )
    yield "the weights are powers of 2 instead of e", _attend(true * 0.6931471805599453, values)
    if L > block:
        last = (L - 1) // block * block
        yield "only the last block counts", _attend(true[:, last:], values[:, last:])
        yield "only the first block counts", _attend(true[:, :block], values[:, :block])
        yield "the last block is missing", _attend(true[:, :last], values[:, :last])
        yield from _not_rescaled(true, values, block)
    if rest := -L % block:
        padded = torch.nn.functional.pad(true, (0, rest))
        more = torch.nn.functional.pad(values, (0, 0, 0, rest))
        yield "positions beyond L have the score 0; give them −inf before the maximum", _attend(padded, more)
    yield "the weighted scores are missing: o is the mean of the values", values.mean(dim=1)


def _not_rescaled(scores, values, block) -> Candidates:
    for said, of_total, of_o in (
        ("the sum and the output are not rescaled when the maximum grows", False, False),
        ("the output is not rescaled when the maximum grows", True, False),
        ("the sum is not rescaled when the maximum grows", False, True),
    ):
        largest = torch.full((len(scores), 1), -torch.inf, dtype=torch.float64)
        total, o = torch.zeros_like(largest), torch.zeros_like(values[:, 0])
        for part, v in zip(scores.split(block, dim=1), values.split(block, dim=1), strict=True):
            new = torch.maximum(largest, part.amax(dim=1, keepdim=True))
            shrink, weights = (largest - new).exp(), (part - new).exp()
            o = (o * shrink if of_o else o) + torch.einsum("hl,hld->hd", weights, v)
            total = (total * shrink if of_total else total) + weights.sum(dim=1, keepdim=True)
            largest = new
        yield said, o / total


def bound_causes(q, k, k_scale, v, v_scale, o, block) -> Candidates:
    q, k, k_scale, v, v_scale, o = _double(q, k, k_scale, v, v_scale, o)
    given = q, k_scale, v * v_scale[..., None], v_scale
    yield "the keys' error is missing: it changes the scores", 0.5 * v_scale.amax(dim=1)
    yield "the values' own error is missing: half of the largest v_scale", _bound(*given, half_v=0.0)
    yield "an error of rounding is half a scale, not a whole one", _bound(*given, half_k=1.0, half_v=1.0)
    yield "the keys' error is half a scale, not a whole one", _bound(*given, half_k=1.0)
    yield "the values' error is half a scale, not a whole one", _bound(*given, half_v=1.0)
    yield (
        "of_score is doubled in the exponent: numerator and denominator of a weight both change",
        _bound(*given, factor=1.0),
    )
    yield "1 is not subtracted from exp(2 · of_score)", _bound(*given, minus=0.0)
    yield "the sum of |q| is not divided by √D", _bound(*given, root=False)
    yield "the errors of q · key add up with |q|, not with q", _bound(*given, of_q=lambda q: q.sum(dim=1))
    yield "the errors of q · key add up with |q|, not with q", _bound(*given, of_q=lambda q: q.sum(dim=1).abs())
    yield "the sum of |q| counts, not the largest |q|", _bound(*given, of_q=lambda q: q.abs().amax(dim=1))
    yield "the sum of |q| counts, not the length of q", _bound(*given, of_q=lambda q: q.norm(dim=1))
    yield "the largest scale counts, not the mean", _bound(*given, worst=torch.mean)
    yield "the largest scale counts, not the smallest", _bound(*given, worst=torch.amin)
    last = (k.shape[1] - 1) // block * block
    yield (
        "only the last block's scales count; keep the largest so far",
        _bound(*given, worst=lambda x, dim: x[:, last:].amax(dim=dim)),
    )
    yield (
        "the largest |v| and the largest v_scale may belong to different positions; multiply before the maximum",
        _bound(*given, of_v=lambda values: v.abs().amax(dim=(1, 2)) * v_scale.amax(dim=1)),
    )
    yield (
        "a position's largest |v| need not be 127: take the largest |v| · v_scale",
        _bound(*given, of_v=lambda values: 127 * v_scale.amax(dim=1)),
    )
    yield (
        "the values are not scaled before their largest is taken",
        _bound(*given, of_v=lambda values: v.abs().amax(dim=(1, 2))),
    )
    yield (
        "the largest absolute value counts, not the largest value",
        _bound(*given, of_v=lambda values: values.amax(dim=(1, 2))),
    )
    yield (
        "the largest cached value counts, not the largest output",
        _bound(*given, of_v=lambda values: o.abs().amax(dim=1)),
    )
    yield (
        "the largest cached value counts, not the largest sum or mean",
        _bound(*given, of_v=lambda values: values.abs().mean(dim=2).amax(dim=1)),
    )
    yield "this approximates exp(2 · of_score) − 1 by 2 · of_score, which is too small", _bound_linear(*given)


def _bound_linear(q, k_scale, values, v_scale):
    of_score = 0.5 * k_scale.amax(dim=1) * q.abs().sum(dim=1) / q.shape[1] ** 0.5
    return 0.5 * v_scale.amax(dim=1) + 2 * of_score * values.abs().amax(dim=(1, 2))
