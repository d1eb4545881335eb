"""Move scale from activations to a weight with one mistake each, as answers to exercise 6 of lab 12 do."""

from __future__ import annotations

from collections.abc import Callable

import torch


def largest(x: torch.Tensor) -> torch.Tensor:
    return x.abs().amax(dim=0)


def moved(
    x: torch.Tensor,
    w: torch.Tensor,
    alpha: float,
    *,
    of_x: Callable = largest,
    of_w: Callable = largest,
    factors: Callable = lambda a, b, alpha: a**alpha / b ** (1 - alpha),
    used: Callable = lambda s: s,
    x_by: Callable = torch.div,
    w_by: Callable = torch.mul,
):
    """Return the right answer; other settings than the defaults make mistakes."""
    a, b = of_x(x), of_w(w)
    s = factors(a, b, alpha)
    s = used(torch.where((a != 0) & (b != 0), s, 1.0))
    return x_by(x, s), w_by(w, s), s


def _with(**settings) -> Callable:
    return lambda x, w, alpha: moved(x, w, alpha, **settings)


def _highest(x: torch.Tensor) -> torch.Tensor:
    return x.amax(dim=0).clamp(min=0)


def _mean(x: torch.Tensor) -> torch.Tensor:
    return x.abs().mean(dim=0)


MEAN = "the mean of a channel is taken; SmoothQuant takes the largest absolute value"
NO_ABS = "the largest number of a channel is taken instead of its largest absolute value"
MISTAKES = [
    (
        "activations are multiplied and the weight is divided by s; outliers of the activations then grow",
        _with(x_by=torch.mul, w_by=torch.div),
    ),
    ("both are divided by s; then x · wᵀ changes", _with(w_by=torch.div)),
    ("both are multiplied by s; then x · wᵀ changes", _with(x_by=torch.mul)),
    ("the weight is not changed; then x · wᵀ changes", _with(w_by=lambda w, s: w.clone())),
    ("the activations are not changed; then x · wᵀ changes", _with(x_by=lambda x, s: x.clone())),
    ("alpha and 1 − alpha are exchanged", _with(factors=lambda a, b, alpha: a ** (1 - alpha) / b**alpha)),
    ("alpha is the exponent of both; the weight's is 1 − alpha", _with(factors=lambda a, b, alpha: (a / b) ** alpha)),
    ("the two powers are multiplied; divide by the weight's",
     _with(factors=lambda a, b, alpha: a**alpha * b ** (1 - alpha))),
    ("s is upside down: the activations' power is the numerator",
     _with(factors=lambda a, b, alpha: b ** (1 - alpha) / a**alpha)),
    ("alpha is not used: s is the square root of the quotient", _with(factors=lambda a, b, alpha: (a / b).sqrt())),
    ("alpha is not used: s is the quotient of the two largest values", _with(factors=lambda a, b, alpha: a / b)),
    ("the weight's largest values are not used", _with(factors=lambda a, b, alpha: a**alpha)),
    ("the activations' largest values are not used", _with(factors=lambda a, b, alpha: 1 / b ** (1 - alpha))),
    ("alpha is a factor; it is an exponent", _with(factors=lambda a, b, alpha: alpha * a / ((1 - alpha) * b))),
    (NO_ABS, _with(of_x=_highest)),
    (NO_ABS, _with(of_w=_highest)),
    (NO_ABS, _with(of_x=_highest, of_w=_highest)),
    (NO_ABS, _with(of_x=lambda x: x.amax(dim=0), of_w=lambda x: x.amax(dim=0))),
    (NO_ABS, _with(of_x=lambda x: x.amax(dim=0))),
    (NO_ABS, _with(of_w=lambda x: x.amax(dim=0))),
    ("one maximum serves all channels of the activations; each channel has its own",
     _with(of_x=lambda x: x.abs().amax().expand(x.shape[1]))),
    ("one maximum serves all channels of the weight; each channel has its own",
     _with(of_w=lambda x: x.abs().amax().expand(x.shape[1]))),
    (MEAN, _with(of_x=_mean)),
    (MEAN, _with(of_x=_mean, of_w=_mean)),
    ("s is inverted in the result: return the factors by which x is divided", lambda x, w,
     alpha: _inverted(x, w, alpha)),
]  # fmt: skip

PLACES = [
    ("only channels without activations or weights are wrong: where the largest |x| or the largest |w| is 0, s is 1",
     lambda x, w, alpha: ((largest(x) == 0) | (largest(w) == 0))[None, :]),
]  # fmt: skip


def _inverted(x, w, alpha):
    x, w, s = moved(x, w, alpha)
    return x, w, 1 / s
