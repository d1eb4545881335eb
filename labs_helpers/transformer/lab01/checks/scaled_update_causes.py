"""What common mistakes do in `scaled_update`: ways that differ from the right one in a part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from labs_helpers.transformer.lab01.checks.scaled_update_ways import RIGHT, State, Way, right_change


def mistakes() -> Iterator[tuple[str, Way]]:
    for sentence, change in _changes():
        yield sentence, replace(RIGHT, change=change)
    for sentence, finite in _tests():
        yield sentence, replace(RIGHT, finite=finite)
    for looked_at in ((0,), (-1,)):
        yield "every gradient is to be looked at, not one of them", replace(RIGHT, looked_at=looked_at)
    yield "nothing asks whether the gradients are finite", replace(RIGHT, looked_at=())
    whole = "the whole step is skipped: look at all gradients before the first weight changes"
    for skipped in ("it", "it and what follows"):
        yield whole, replace(RIGHT, skipped=skipped)
    yield "the step is not skipped: a weight changes by what is not finite", replace(RIGHT, skipped="nothing")
    for looked_at in (None, ()):
        way = replace(RIGHT, skipped="nothing", change=_zeroed, looked_at=looked_at)
        yield "the whole step is skipped: a 0 in the place of inf or NaN is a gradient, too, and a wrong one", way
    yield (
        "the gradients are of the scale that was given: update first, then let it grow",
        replace(RIGHT, grows_first=True),
    )
    for sentence, back_off in _back_offs():
        yield sentence, replace(RIGHT, back_off=back_off)
    for sentence, grow in _growths():
        yield sentence, replace(RIGHT, grow=grow)


def _zeroed(weight: Tensor, exact: Tensor, gradient: Tensor, scale: float, lr: float) -> None:
    right_change(weight, exact, gradient.float().nan_to_num(0.0, 0.0, 0.0), scale, lr)


def _changes() -> Iterator[tuple[str, Callable]]:
    def master_by(update: Callable[[Tensor, float, float], Tensor]) -> Callable:
        def change(weight: Tensor, exact: Tensor, gradient: Tensor, scale: float, lr: float) -> None:
            exact -= update(gradient, scale, lr)
            weight.copy_(exact)

        return change

    def right(gradient: Tensor, scale: float, lr: float) -> Tensor:
        return lr * (gradient.float() / scale)

    low = "lr · gradient / scale is computed in float16: take gradient.float() first"
    for update in (
        lambda g, scale, lr: lr * g / scale,
        lambda g, scale, lr: lr * (g / scale),
        lambda g, scale, lr: lr * (g / scale).float(),
        lambda g, scale, lr: (lr * g).float() / scale,
        lambda g, scale, lr: (lr / scale) * g,
        lambda g, scale, lr: lr * (g / torch.tensor(scale).half()),
        lambda g, scale, lr: lr * (g / torch.tensor(scale).half()).float(),
        lambda g, scale, lr: (g * torch.tensor(lr).half()).float() / scale,
    ):
        yield low, master_by(update)
    yield (
        "the gradient is that of scale times the loss: divide by the scale",
        master_by(lambda g, scale, lr: lr * g.float()),
    )
    yield (
        "the gradient is divided by the scale more than once",
        master_by(lambda g, scale, lr: right(g, scale, lr) / scale),
    )
    yield "the gradient is divided by the scale, not multiplied", master_by(lambda g, scale, lr: lr * g.float() * scale)
    yield "lr is left out", master_by(lambda g, scale, lr: g.float() / scale)
    yield "the weights go against the gradient: subtract", master_by(lambda g, scale, lr: -right(g, scale, lr))

    def not_written(weight, exact, gradient, scale, lr) -> None:
        exact -= right(gradient, scale, lr)

    def not_kept(weight, exact, gradient, scale, lr) -> None:
        weight.copy_(exact - right(gradient, scale, lr))

    def no_master(weight, exact, gradient, scale, lr) -> None:
        weight.copy_(weight - right(gradient, scale, lr))

    def no_master_low(weight, exact, gradient, scale, lr) -> None:
        weight -= lr * gradient / scale

    def from_rounded(weight, exact, gradient, scale, lr) -> None:
        exact.copy_(weight - right(gradient, scale, lr))
        weight.copy_(exact)

    def rounded(weight, exact, gradient, scale, lr) -> None:
        weight.copy_(exact - right(gradient, scale, lr))
        exact.copy_(weight)

    def low_from_rounded(weight, exact, gradient, scale, lr) -> None:
        weight -= right(gradient, scale, lr).half()
        exact.copy_(weight)

    def rounded_first(weight, exact, gradient, scale, lr) -> None:
        exact -= right(gradient, scale, lr)
        exact.copy_(exact.half())
        weight.copy_(exact)

    def rounded_from_rounded(weight, exact, gradient, scale, lr) -> None:
        weight.copy_(weight - right(gradient, scale, lr))
        exact.copy_(weight)

    def each_by_itself(weight, exact, gradient, scale, lr) -> None:
        exact -= right(gradient, scale, lr)
        weight.copy_(weight - right(gradient, scale, lr))

    def each_by_itself_low(weight, exact, gradient, scale, lr) -> None:
        exact -= right(gradient, scale, lr)
        weight -= right(gradient, scale, lr).half()

    def late(weight, exact, gradient, scale, lr) -> None:
        weight.copy_(exact)
        exact -= right(gradient, scale, lr)

    def nothing(weight, exact, gradient, scale, lr) -> None: ...

    yield (
        "the weights that were given stay as they were: weight.copy_(…) writes to them, `weight = …` does not",
        not_written,
    )
    yield "the masters that were given stay as they were: `-=` changes one, `exact = exact - …` makes another", not_kept
    masters = "the weights are updated, and not the masters: what float16 rounds away is lost for good"
    yield masters, no_master
    yield masters, no_master_low
    start = "the update starts from the rounded weights; the masters have what rounding took"
    for change in (from_rounded, rounded, rounded_first, rounded_from_rounded, low_from_rounded):
        yield start, change
    own = "the weights are the masters, rounded: copy these, and no update of their own"
    yield own, each_by_itself
    yield own, each_by_itself_low
    yield "the weights are written before the masters change, a step too late", late
    yield "neither weights nor masters that were given have changed", nothing


def _tests() -> Iterator[tuple[str, Callable[[Tensor], bool]]]:
    yield "an inf is no NaN: ask for isfinite()", lambda g: not g.isnan().any()
    yield "a NaN is no inf: ask for isfinite()", lambda g: not g.isinf().any()
    negative = "−inf is not finite, either"
    yield negative, lambda g: not (g == math.inf).any() and not g.isnan().any()
    yield negative, lambda g: not (g == math.inf).any()
    yield "inf is not finite, either", lambda g: bool(g.min().isfinite())
    total = "ask each element by isfinite(): a sum, a square or a product of finite ones may be inf in float16"
    yield total, lambda g: bool(g.sum().isfinite())
    yield total, lambda g: bool((g * g).isfinite().all())
    yield "inf − inf is NaN: a sum of inf and −inf is not inf", lambda g: not g.float().sum().isinf()
    yield "the gradients are finite where all elements are, not where one is", lambda g: bool(g.isfinite().any())
    yield "a step is skipped where a gradient is not finite, not where it is", lambda g: not g.isfinite().all()


def _back_offs() -> Iterator[tuple[str, Callable[[float, int], State]]]:
    yield "the scale is not halved after a skipped step", lambda scale, good: (scale, 0)
    yield "the scale is halved after a skipped step, not doubled", lambda scale, good: (2 * scale, 0)
    again = "good steps are counted in a row: after a skipped one from 0 again"
    yield again, lambda scale, good: (scale / 2, good)
    yield again, lambda scale, good: (scale / 2, good + 1)
    yield again, lambda scale, good: (scale, good)
    yield "a skipped step is no good one: the count is 0 after it", lambda scale, good: (scale / 2, 1)
    for least in (1.0, 2.0):
        yield (
            "the scale has no least value: 1 is halved, too",
            lambda scale, good, least=least: (max(scale / 2, least), 0),
        )
    yield "the scale is a float: / 2, not // 2", lambda scale, good: (scale // 2, 0)
    for factor in (4, 10):
        yield "the scale is halved", lambda scale, good, factor=factor: (scale / factor, 0)


def _growths() -> Iterator[tuple[str, Callable[[float, int, int], State]]]:
    for count in (lambda good: good + 1, lambda good: 0):
        yield (
            "the scale grows after growth_interval good steps, not after each",
            lambda scale, good, n, count=count: (2 * scale, count(good)),
        )
    yield "the scale never grows", lambda scale, good, n: (scale, good + 1)
    yield "the scale never grows", lambda scale, good, n: (scale, good + 1 if good + 1 < n else 0)
    again = "after growth the count begins at 0 again"
    yield again, lambda scale, good, n: (2 * scale if good + 1 >= n else scale, good + 1)
    yield again, lambda scale, good, n: (2 * scale if good + 1 == n else scale, good + 1)
    yield again, lambda scale, good, n: (2 * scale if (good + 1) % n == 0 else scale, good + 1)
    yield again, lambda scale, good, n: (2 * scale, 1) if good + 1 == n else (scale, good + 1)
    late = "this step is a good one, too: count it before you compare with growth_interval"
    yield late, lambda scale, good, n: (2 * scale, 0) if good >= n else (scale, good + 1)
    yield late, lambda scale, good, n: (2 * scale, 1) if good >= n else (scale, good + 1)
    yield late, lambda scale, good, n: (2 * scale, 0) if good > n else (scale, good + 1)
    yield (
        "the scale grows a step too early",
        lambda scale, good, n: (2 * scale, 0) if good + 2 >= n else (scale, good + 1),
    )
    yield "the good step is not counted", lambda scale, good, n: (2 * scale, 0) if good + 1 >= n else (scale, good)
    yield "the good step is not counted", lambda scale, good, n: (2 * scale, 0) if good == n else (scale, good)
    for most in (2.0**15, 65504.0, 2.0**16, 2.0**24):
        yield (
            "the scale has no greatest value",
            lambda scale, good, n, most=most: (min(2 * scale, most), 0) if good + 1 == n else (scale, good + 1),
        )
    yield "the scale doubles", lambda scale, good, n: (scale + 2, 0) if good + 1 == n else (scale, good + 1)
    for factor in (1.5, 4, 10):
        yield (
            "the scale doubles",
            lambda scale, good, n, factor=factor: (factor * scale, 0) if good + 1 == n else (scale, good + 1),
        )
    yield (
        "the scale doubles, it is not halved",
        lambda scale, good, n: (scale / 2, 0) if good + 1 == n else (scale, good + 1),
    )
