"""Search AWQ's factors with one mistake each, as answers to exercise 7 of lab 12 do."""

from __future__ import annotations

from collections.abc import Callable

import torch


def searched(
    x: torch.Tensor,
    w: torch.Tensor,
    quantize: Callable,
    ratios,
    *,
    importance: Callable = lambda x, w: x.abs().mean(dim=0),
    normal: Callable = lambda s: s / (s.max() * s.min()).sqrt(),
    rounded: Callable = lambda w, s, quantize: quantize(w * s) / s,
    error: Callable = lambda x, w, rounded: (x @ w.T - x @ rounded.T).square().mean(),
    best: Callable = torch.argmin,
    power: Callable = lambda a, ratio: a**ratio,
    factors: Callable = lambda tried, best: tried[best],
    shown: Callable = lambda ratios, best: ratios[best],
):
    """Return the right answer; other settings than the defaults make mistakes."""
    tried = [normal(power(importance(x, w), ratio)) for ratio in ratios]
    errors = torch.stack([error(x, w, rounded(w, s, quantize)) for s in tried])
    at = int(best(errors))
    return shown(ratios, at), factors(tried, at), errors


def _with(**settings) -> Callable:
    return lambda x, w, quantize, ratios: searched(x, w, quantize, ratios, **settings)


def _last_smallest(errors: torch.Tensor) -> int:
    return len(errors) - 1 - int(errors.flip(0).argmin())


MISTAKES = [
    (
        "the weight is divided by s before rounding and multiplied after it; then important channels are rounded "
         "coarsely",
        _with(rounded=lambda w, s, quantize: quantize(w / s) * s),
    ),
    ("the rounded weight is not divided by s again, so it is compared with another weight",
     _with(rounded=lambda w, s, quantize: quantize(w * s))),
    ("the factors do not change the rounding, so every ratio gives the same error: round w · s, whose columns differ",
     _with(rounded=lambda w, s, quantize: quantize(w))),
    ("the factors multiply the rounded weight; multiply before rounding, divide after it",
     _with(rounded=lambda w, s, quantize: quantize(w) * s)),
    ("the rounded weight is divided by s twice", _with(rounded=lambda w, s, quantize: quantize(w * s) / s / s)),
    ("the importance is the largest |x| of a channel; AWQ takes the mean",
     _with(importance=lambda x, w: x.abs().amax(dim=0))),
    ("the importance comes from the weight; AWQ takes it from the inputs",
     _with(importance=lambda x, w: w.abs().mean(dim=0))),
    ("the importance is the mean of x, in which positive and negative inputs cancel; take |x|",
     _with(importance=lambda x, w: x.mean(dim=0))),
    ("the importance is the mean of x, in which positive and negative inputs cancel; take |x|",
     _with(importance=lambda x, w: x.mean(dim=0).abs())),
    ("the importance is the mean square of a channel; take the mean of |x|",
     _with(importance=lambda x, w: x.square().mean(dim=0))),
    ("the importance is the root of the mean square; take the mean of |x|",
     _with(importance=lambda x, w: x.square().mean(dim=0).sqrt())),
    ("the importance is a sum; take the mean of |x|",
     _with(importance=lambda x, w: x.abs().sum(dim=0), normal=lambda s: s)),
    ("s is not divided by √(largest · smallest)", _with(normal=lambda s: s)),
    ("s is divided by largest · smallest, without the root", _with(normal=lambda s: s / (s.max() * s.min()))),
    ("s is divided by its largest factor, not by √(largest · smallest)", _with(normal=lambda s: s / s.max())),
    ("s is divided by its mean, not by √(largest · smallest)", _with(normal=lambda s: s / s.mean())),
    ("s is multiplied by √(largest · smallest); divide", _with(normal=lambda s: s * (s.max() * s.min()).sqrt())),
    ("the ratio is a factor; it is an exponent", _with(power=lambda a, ratio: a * ratio)),
    ("the exponent is −ratio: unimportant channels are protected", _with(power=lambda a, ratio: a**-ratio)),
    ("the exponent is 1 − ratio", _with(power=lambda a, ratio: a ** (1 - ratio))),
    ("the largest error is chosen; take the smallest", _with(best=torch.argmax)),
    ("of several equal errors the last one is chosen; take the first", _with(best=_last_smallest)),
    ("the place of the best ratio is returned; return the ratio", _with(shown=lambda ratios, best: best)),
    ("the last ratio is returned; return the one with the smallest error", _with(best=lambda errors: len(errors) - 1)),
    ("the first ratio is returned; return the one with the smallest error", _with(best=lambda errors: 0)),
    ("the factors of the last ratio are returned; keep those of the best one",
     _with(factors=lambda tried, best: tried[-1])),
    ("the error is that of the weight; compare the layer's outputs",
     _with(error=lambda x, w, rounded: (w - rounded).square().mean())),
    ("the differences are added up; take their mean",
     _with(error=lambda x, w, rounded: (x @ w.T - x @ rounded.T).square().sum())),
    ("the error is the mean of the absolute differences; take the mean square",
     _with(error=lambda x, w, rounded: (x @ w.T - x @ rounded.T).abs().mean())),
    ("the error is the root of the mean square; take the mean square",
     _with(error=lambda x, w, rounded: (x @ w.T - x @ rounded.T).square().mean().sqrt())),
    ("the error is the largest difference; take the mean square",
     _with(error=lambda x, w, rounded: (x @ w.T - x @ rounded.T).abs().max())),
    ("the error is the mean difference, in which signs cancel; take the mean square",
     _with(error=lambda x, w, rounded: (x @ w.T - x @ rounded.T).mean())),
]  # fmt: skip
