"""Variants of exercise 6's update that differ from the right one in one part, as functions of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

State = tuple[Any, Any]  # scale, good_steps


def way(
    weights: Sequence[Tensor],
    master: Sequence[Tensor],
    gradients: Sequence[Tensor],
    scale: float,
    good: int,
    lr: float,
    interval: int,
    *,
    finite: Callable[[Tensor], Any] = lambda g: g.isfinite().all(),
    looked_at: slice = slice(None),
    skipped: str = "all",
    update: Callable[[Tensor, float, float], Tensor] = lambda g, scale, lr: lr * (g.float() / scale),
    write: Callable[[Tensor, Tensor, Tensor], Any] = lambda w, m, u: w.copy_(m.sub_(u)),
    back_off: Callable[[float, int], State] = lambda s, good: (s / 2, 0),
    grow: Callable[[float, int, int], State] = lambda s, good, n: (2 * s, 0) if good + 1 == n else (s, good + 1),
    grows_first: bool = False,
) -> State:
    """Return an update; the defaults are right.

    looked_at: the gradients that are tested for being finite. skipped: what stays unchanged if one is not: 'all', 'it',
    'it and what follows' or 'nothing'. write: how an update reaches weight and master.
    """
    seen = range(len(gradients))[looked_at]
    fine = [index not in seen or bool(finite(gradient)) for index, gradient in enumerate(gradients)]
    used = grow(scale, good, interval)[0] if grows_first else scale
    if all(fine) or skipped != "all":
        with torch.no_grad():
            for weight, exact, gradient, is_fine in zip(weights, master, gradients, fine, strict=True):
                if is_fine or skipped == "nothing":
                    write(weight, exact, update(gradient, used, lr))
                elif skipped == "it and what follows":
                    break
    return grow(scale, good, interval) if all(fine) else back_off(scale, good)


def _half(number: float) -> Tensor:
    return torch.tensor(number).half()


def _zeroed(g: Tensor, scale: float, lr: float) -> Tensor:
    return lr * (g.float().nan_to_num(0.0, 0.0, 0.0) / scale)


def _grown(made: Callable[[float], float]) -> Callable[[float, int, int], State]:
    return lambda s, good, n: (made(s), 0) if good + 1 == n else (s, good + 1)


# For each part: a sentence, and the mistake that replaces the part.
UPDATES = (
    (
        "lr · gradient / scale is computed in float16: take gradient.float() first",
        lambda g, scale, lr: lr * g / scale,
        lambda g, scale, lr: lr * (g / scale),
        lambda g, scale, lr: lr * (g / scale).float(),
        lambda g, scale, lr: (lr * g).float() / scale,
        lambda g, scale, lr: (lr / scale) * g,
        lambda g, scale, lr: lr * (g / _half(scale)),
        lambda g, scale, lr: (g * _half(lr)).float() / scale,
    ),
    ("the gradient belongs to scale times the loss: divide by the scale", lambda g, scale, lr: lr * g.float()),
    ("the gradient is divided by the scale more than once", lambda g, scale, lr: lr * (g.float() / scale / scale)),
    ("divide the gradient by the scale, do not multiply", lambda g, scale, lr: lr * g.float() * scale),
    ("lr is left out", lambda g, scale, lr: g.float() / scale),
    ("weights move against the gradient: subtract", lambda g, scale, lr: -lr * (g.float() / scale)),
)
MASTERS = "the weights are updated instead of the masters: bits that float16 rounds away are lost"
NOT_KEPT = "the given masters did not change: use `-=`; `exact = exact - …` creates a new tensor"
WRITES = (
    ("the given weights did not change: write to them with weight.copy_(…)", lambda w, m, u: m.sub_(u)),
    (NOT_KEPT, lambda w, m, u: w.copy_(m - u)),
    (MASTERS, lambda w, m, u: w.copy_(w - u)),
    (
        "the update starts from the rounded weights; start from the masters, which are exact",
        lambda w, m, u: w.copy_(m.copy_(w - u)),
        lambda w, m, u: m.copy_(w.copy_(m - u)),
        lambda w, m, u: m.copy_(w.copy_(w - u)),
        lambda w, m, u: m.copy_(w.sub_(u.half())),
    ),
    (
        "the weights must be the rounded masters: copy these, do not update weights separately",
        lambda w, m, u: (m.sub_(u), w.copy_(w - u)),
        lambda w, m, u: (m.sub_(u), w.sub_(u.half())),
    ),
    (
        "the weights are written before the masters change, so they are one step behind",
        lambda w, m, u: (w.copy_(m), m.sub_(u)),
    ),
    ("neither the given weights nor the given masters changed", lambda w, m, u: None),
)
FINITE = (
    ("inf is not NaN: use isfinite()", lambda g: not g.isnan().any()),
    ("NaN is not inf: use isfinite()", lambda g: not g.isinf().any()),
    (
        "−inf is not finite either",
        lambda g: not (g == torch.inf).any() and not g.isnan().any(),
        lambda g: not (g == torch.inf).any(),
    ),
    (
        "test each element with isfinite(): a sum, a square or a product of finite numbers may be inf in float16",
        lambda g: g.sum().isfinite(),
        lambda g: (g * g).isfinite().all(),
    ),
    ("inf − inf is NaN: a sum of inf and −inf is not inf", lambda g: not g.float().sum().isinf()),
    ("the gradients are finite if all elements are, not if one is", lambda g: g.isfinite().any()),
    ("skip a step if a gradient is not finite, not if it is", lambda g: not g.isfinite().all()),
)
BACK_OFFS = (
    ("the scale is not halved after a skipped step", lambda s, good: (s, 0)),
    ("halve the scale after a skipped step, do not double it", lambda s, good: (2 * s, 0)),
    (
        "count good steps in a row: start again from 0 after a skipped step",
        lambda s, good: (s / 2, good),
        lambda s, good: (s / 2, good + 1),
        lambda s, good: (s, good),
    ),
    ("the scale has no minimum: halve 1 too", lambda s, good: (max(s / 2, 1.0), 0)),
    ("the scale is a float: / 2, not // 2", lambda s, good: (s // 2, 0)),
    ("the scale is halved", lambda s, good: (s / 4, 0), lambda s, good: (s / 10, 0)),
)
GROWTHS = (
    (
        "the scale grows after growth_interval good steps, not after each",
        lambda s, good, n: (2 * s, good + 1),
        lambda s, good, n: (2 * s, 0),
    ),
    ("the scale never grows", lambda s, good, n: (s, good + 1), _grown(lambda s: s)),
    (
        "after the scale grows, the count starts again from 0",
        lambda s, good, n: (2 * s if good + 1 >= n else s, good + 1),
        lambda s, good, n: (2 * s if good + 1 == n else s, good + 1),
        lambda s, good, n: (2 * s if (good + 1) % n == 0 else s, good + 1),
        lambda s, good, n: (2 * s, 1) if good + 1 == n else (s, good + 1),
    ),
    (
        "this step is a good one too: count it before you compare with growth_interval",
        lambda s, good, n: (2 * s, 0) if good >= n else (s, good + 1),
        lambda s, good, n: (2 * s, 1) if good >= n else (s, good + 1),
        lambda s, good, n: (2 * s, 0) if good > n else (s, good + 1),
    ),
    ("the scale grows one step too early", lambda s, good, n: (2 * s, 0) if good + 2 >= n else (s, good + 1)),
    (
        "the good step is not counted",
        lambda s, good, n: (2 * s, 0) if good + 1 >= n else (s, good),
        lambda s, good, n: (2 * s, 0) if good == n else (s, good),
    ),
    ("the scale has no maximum", *(_grown(lambda s, m=m: min(2 * s, m)) for m in (2.0**15, 65504.0, 2.0**16))),
    ("the scale doubles", _grown(lambda s: s + 2), *(_grown(lambda s, f=f: f * s) for f in (0.5, 1.5, 4, 10))),
)
PARTS = {"update": UPDATES, "write": WRITES, "finite": FINITE, "back_off": BACK_OFFS, "grow": GROWTHS}
ONE_OF_THEM = "test every gradient, not only one"
WHOLE = "skip the whole step: test all gradients before the first weight changes"
ZERO = "skip the whole step: replacing inf or NaN by 0 gives a wrong gradient"
NO_GRADIENT = slice(0)
MISTAKES: list[tuple[str, Callable[..., State]]] = [
    *((said, partial(way, **{part: one})) for part, rows in PARTS.items() for said, *ones in rows for one in ones),
    (MASTERS, partial(way, update=UPDATES[0][1], write=lambda w, m, u: w.sub_(u))),
    (ONE_OF_THEM, partial(way, looked_at=slice(1))),
    (ONE_OF_THEM, partial(way, looked_at=slice(-1, None))),
    ("nothing tests whether all gradients are finite", partial(way, looked_at=NO_GRADIENT)),
    (WHOLE, partial(way, skipped="it")),
    (WHOLE, partial(way, skipped="it and what follows")),
    ("the step is not skipped: a non-finite gradient changes a weight", partial(way, skipped="nothing")),
    (ZERO, partial(way, skipped="nothing", update=_zeroed)),
    (ZERO, partial(way, update=_zeroed, looked_at=NO_GRADIENT)),
    ("the gradients belong to the given scale: update first, then let it grow", partial(way, grows_first=True)),
    ("the scale comes first in (scale, good_steps)", lambda *arguments: way(*arguments)[::-1]),
]
