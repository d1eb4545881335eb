"""Multiply int8 by int8 with one mistake each, as answers to exercise 8 of lab 12 do."""

from __future__ import annotations

from collections.abc import Callable

import torch


def of_tokens(x: torch.Tensor) -> torch.Tensor:
    return x.abs().amax(dim=1, keepdim=True)


def exact(a: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    return (a.double() @ q.double().T).float()


def multiplied(
    x: torch.Tensor,
    q: torch.Tensor,
    scale: torch.Tensor,
    *,
    largest: Callable = of_tokens,
    levels: float = 127,
    divided: Callable = torch.div,
    rounding: Callable = torch.round,
    sums: Callable = exact,
    rescaled: Callable = lambda sums, of_token, scale: sums * of_token * scale,
) -> torch.Tensor:
    """Return the right answer; other settings than the defaults make mistakes."""
    of_token = largest(x) / levels
    of_token = torch.where(of_token != 0, of_token, 1.0)
    steps = rounding(divided(x, of_token))
    return rescaled(sums(steps, q), of_token, scale).float()


def _with(**settings) -> Callable:
    return lambda x, q, scale: multiplied(x.float(), q, scale, **settings)


def _highest(x: torch.Tensor) -> torch.Tensor:
    return x.amax(dim=1, keepdim=True)


def _wrapped(a: torch.Tensor) -> torch.Tensor:
    return a.nan_to_num().to(torch.int32).to(torch.int8)


MISTAKES = [
    ("the token's scale is missing: a sum belongs to a token and to an output channel",
     _with(rescaled=lambda s, t, c: s * c)),
    ("the output channel's scale is missing: a sum belongs to a token and to an output channel",
     _with(rescaled=lambda s, t, c: s * t)),
    ("neither scale is applied to the sums", _with(rescaled=lambda s, t, c: s)),
    ("the sums are divided by the scales; multiply by both", _with(rescaled=lambda s, t, c: s / (t * c))),
    ("the sums are divided by the token's scale; multiply by both scales", _with(rescaled=lambda s, t, c: s * c / t)),
    ("the sums are divided by the output channel's scale; multiply by both scales",
     _with(rescaled=lambda s, t, c: s * t / c)),
    ("the token's scale is applied twice", _with(rescaled=lambda s, t, c: s * t * t * c)),
    ("the output channel's scale is applied twice", _with(rescaled=lambda s, t, c: s * t * c * c)),
    ("the two scales are added; multiply the sum by both", _with(rescaled=lambda s, t, c: s * (t + c))),
    ("the scales are applied in float16, which rounds them and the sums",
     _with(rescaled=lambda s, t, c: s.half() * t.half() * c.half())),
    ("one scale serves all tokens; a token of small numbers then loses its digits",
     _with(largest=lambda x: x.abs().amax().expand(len(x), 1))),
    *(("the largest number of a token is taken instead of its largest absolute value", _with(largest=one, sums=sums))
      for one in (_highest, lambda x: _highest(x).clamp(min=0))
      for sums in (exact, lambda a, q: exact(_wrapped(a), q))),
    ("x is divided in its own dtype, float16, which rounds the scale and the quotients; convert x to float32 first",
     multiplied),
    ("the token's scale is its largest |x| / 128; int8 ends at 127", _with(levels=128)),
    ("the token's scale is its largest |x| / 128; int8 ends at 127",
     _with(levels=128, sums=lambda a, q: exact(_wrapped(a), q))),
    ("the token's scale is its largest |x| / 128; int8 ends at 127",
     _with(levels=128, sums=lambda a, q: exact(a.clamp(-128, 127), q))),
    ("the token's scale is its largest |x| / 255; the positive side alone has 127 steps", _with(levels=255)),
    ("the token's scale is its largest |x| / 255; the positive side alone has 127 steps",
     _with(levels=255, sums=lambda a, q: exact(a.clamp(-128, 127), q))),
    ("the token's scale is its largest |x| / 255; the positive side alone has 127 steps",
     _with(levels=255, sums=lambda a, q: exact(_wrapped(a), q))),
    ("the activations are cut off, not rounded; use round()", _with(rounding=torch.trunc)),
    ("the activations are cut off, not rounded; use round()", _with(rounding=torch.floor)),
    ("the activations are not rounded: this is W8A16", _with(rounding=lambda a: a)),
    ("x is multiplied by the token's scale; divide", _with(divided=torch.mul)),
    ("the sums are int8 and wrap around; convert both factors to int32 first",
     _with(sums=lambda a, q: (_wrapped(a) @ q.T).float())),
    ("the sums are int16 and wrap around; convert both factors to int32 first",
     _with(sums=lambda a, q: exact(a, q).to(torch.int32).to(torch.int16).float())),
    ("the sums are float16, which is not exact beyond 2,048", _with(sums=lambda a, q: (a.half() @ q.half().T).float())),
    ("the sums are float32, which is not exact beyond 2²⁴; multiply int32",
     _with(sums=lambda a, q: a.float() @ q.float().T)),
]  # fmt: skip
PLACES = [
    ("only tokens of zeros are wrong: largest / 127 is 0 there, and 0 / 0 is not a number; give them the scale 1",
     lambda x, q, scale: of_tokens(x) == 0),
]  # fmt: skip
