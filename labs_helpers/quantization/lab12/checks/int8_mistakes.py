"""Quantize a weight to int8 with one mistake each, as answers to exercise 1 of lab 12 do."""

from __future__ import annotations

from collections.abc import Callable

import torch


def of_rows(w: torch.Tensor) -> torch.Tensor:
    return w.abs().amax(dim=1)


def quantized(
    w: torch.Tensor,
    *,
    largest: Callable = of_rows,
    levels: float = 127,
    added: float = 0.0,
    divided: Callable = torch.div,
    rounding: Callable = torch.round,
    clamped: bool = False,
    bound: Callable = lambda w, q, scale: scale / 2,
    shown: Callable = lambda scale: scale,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the right answer; other settings than the defaults make mistakes."""
    scale = largest(w) / levels + added
    scale = torch.where(scale != 0, scale, 1.0)
    steps = rounding(divided(w, scale[:, None]))
    steps = steps.clamp(-128, 127) if clamped else steps
    q = steps.to(torch.int32).to(torch.int8)  # wraps around
    return q, shown(scale.float()), bound(w.float(), q, scale.float())


def _with(**settings) -> Callable:
    return lambda w: quantized(w.float(), **settings)


def _error(w, q, scale):
    return (w - q * scale[:, None]).abs().amax(dim=1)


def _swapped_bound(w, q, scale):
    return of_rows(w) / 2


OVERFLOW = "the largest weight becomes 128, and int8 ends at 127; the scale is the largest absolute value / 127"
STEPS_255 = "255 steps reach from −127 to 127; the positive side alone has 127"
NO_ABS = "the largest weight is taken instead of the largest absolute value; the most negative one may be larger"
TRUNCATED = "the quotients are cut off, not rounded to the nearest whole number; use round()"
MISTAKES = [
    (OVERFLOW, _with(levels=128)),
    (OVERFLOW, _with(levels=128, clamped=True)),
    (STEPS_255, _with(levels=255)),
    (STEPS_255, _with(levels=255, clamped=True)),
    (NO_ABS, _with(largest=lambda w: w.amax(dim=1), clamped=True)),
    (NO_ABS, _with(largest=lambda w: w.amax(dim=1))),
    (NO_ABS, _with(largest=lambda w: w.amax(dim=1).clamp(min=0))),
    (
        "one scale serves the whole weight; a row of small weights then uses few of the 255 numbers",
        _with(largest=lambda w: w.abs().amax().expand(len(w))),
    ),
    (
        "the range from the smallest to the largest weight is spread over 255 steps, which needs a zero point",
        _with(largest=lambda w: w.amax(dim=1) - w.amin(dim=1), levels=255, clamped=True),
    ),
    (TRUNCATED, _with(rounding=torch.trunc)),
    (TRUNCATED, _with(rounding=torch.floor)),
    ("the quotients are rounded up, not to the nearest whole number", _with(rounding=torch.ceil)),
    ("w is multiplied by the scale; q = w / scale", _with(divided=torch.mul)),
    (
        "the result is 127 / largest, by which w is multiplied; a scale is what q is multiplied by",
        _with(shown=lambda scale: 1 / scale, bound=lambda w, q, scale: 0.5 / scale),
    ),
    (
        "the result is 127 / largest, by which w is multiplied; a scale is what q is multiplied by",
        _with(shown=lambda scale: 1 / scale),
    ),
    ("the scale and the rounding are computed in w's dtype; convert w to float32 first", quantized),
    *((f"{tiny:g} is added to the scales, which moves all of them; only a row of zeros needs another scale",
       _with(added=tiny)) for tiny in (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)),
    (
        "the bound is a whole step; the nearest whole number is at most half a step away",
        _with(bound=lambda w, q, scale: scale),
    ),
    ("the bound is this weight's own error; another row with the same scale may have a larger one",
     _with(bound=_error)),
    (
        "the bound is in steps of q; a step is one scale in units of w",
        _with(bound=lambda w, q, scale: torch.full_like(scale, 0.5)),
    ),
    ("the bound is half of the largest weight; a step is one scale, 1/127 of that", _with(bound=_swapped_bound)),
    (
        "half a step is divided by 127 once more; the scale is a step already",
        _with(bound=lambda w, q, scale: scale / 254),
    ),
    (
        "the bound is one number for the whole weight; each row has its own scale",
        _with(bound=lambda w, q, scale: (scale / 2).max().expand(len(scale))),
    ),
]  # fmt: skip


PLACES = [
    ("only rows of zeros are wrong: largest / 127 is 0 there, and 0 / 0 is not a number; give them the scale 1",
     lambda w: of_rows(w)[:, None] == 0),
    ("only rows of tiny numbers are wrong: their scale is largest / 127, too; only a row of zeros gets another one",
     lambda w: (of_rows(w)[:, None] > 0) & (of_rows(w)[:, None] < 1e-5)),
]  # fmt: skip
