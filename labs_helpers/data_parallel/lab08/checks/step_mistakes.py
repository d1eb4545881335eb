"""Compute a step's gradients over micro-batches on several ranks: the right ones, and those of common mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor


def gradients_of(batches: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradient of each micro-batch's mean loss, (6,) float64: five weights and the bias."""
    weight = torch.cat([torch.linspace(-1, 1, 5), torch.tensor([0.3])]).double()
    found = []
    for batch in batches:
        x = torch.cat([batch.double(), torch.ones(len(batch), 1, dtype=torch.float64)], dim=1)
        found.append(2 * x.T @ (x @ weight) / len(x))
    return found


def clipped(gradient: Tensor, max_norm: float) -> Tensor:
    return gradient * min(1.0, max_norm / max(float(gradient.norm()), 1e-30))


def mean(some: Sequence[Tensor]) -> Tensor:
    return sum(some) / len(some)


def over_samples(of_ranks, samples) -> list[Tensor]:
    """Return each rank's gradients of the mean over all its samples: of_ranks[rank][batch], samples[rank][batch]."""
    pairs = zip(of_ranks, samples, strict=True)
    return [sum(g * n for g, n in zip(some, sizes, strict=True)) / sum(sizes) for some, sizes in pairs]


def right_step(of_ranks, samples, max_norm: float) -> tuple[list[Tensor], float]:
    """Return each rank's gradients after the step, and their norm before they are clipped."""
    whole = mean(over_samples(of_ranks, samples))
    return [clipped(whole, max_norm)] * len(of_ranks), float(whole.norm())


def mistakes(of_ranks, samples, max_norm: float) -> Iterator[tuple[str, list[Tensor]]]:
    """Yield a sentence and each rank's gradients after the step."""
    each, p = over_samples(of_ranks, samples), len(of_ranks)
    whole = mean(each)
    for sentence, scaled in _scalings(of_ranks, samples, each):
        yield sentence, [clipped(mean(scaled), max_norm)] * p
        yield sentence, [mean(scaled)] * p
    yield "nothing is clipped", [whole] * p
    own = "clipped before finish(): each rank's own gradients are clipped, not their mean"
    yield own, [mean([clipped(one, max_norm) for one in each])] * p
    again = "averaged once more: finish() already divides by the number of ranks"
    yield again, [clipped(whole / p, max_norm)] * p
    yield again, [clipped(whole, max_norm) / p] * p
    yield "each value is clipped; clip by the norm of all gradients together", [whole.clamp(-max_norm, max_norm)] * p
    parts = torch.cat([clipped(whole[:5], max_norm), clipped(whole[5:], max_norm)])
    yield "each parameter is clipped by itself; clip by the norm of all gradients together", [parts] * p
    yield "scaled to max_norm although the norm is smaller", [whole * max_norm / float(whole.norm())] * p
    yield "max_norm is divided by the number of ranks", [clipped(whole, max_norm / p)] * p
    yield "clipped to 1 instead of max_norm", [clipped(whole, 1.0)] * p
    grown = []
    for some, sizes in zip(of_ranks, samples, strict=True):
        *parts, last = [g * n / sum(sizes) for g, n in zip(some, sizes, strict=True)]
        total = torch.zeros_like(last)
        for part in parts:
            total = clipped(total + part, max_norm)
        grown.append(total + last)
    yield "clipped after each micro-batch, not once for the whole step", [clipped(mean(grown), max_norm)] * p
    late = "each rank keeps its own gradients: finish() is called too late, or not at all"
    yield late, [clipped(one, max_norm) for one in each]


def _scalings(of_ranks, samples, each) -> Iterator[tuple[str, list[Tensor]]]:
    """Yield a sentence and each rank's gradients before they are averaged, with a wrong scale."""

    def made(function):
        """Apply function(gradients, samples, right gradient) to each rank."""
        return [function(*one) for one in zip(of_ranks, map(torch.tensor, samples), each, strict=True)]

    yield (
        "the losses are added without weights: weight each one by its share of the samples",
        made(lambda g, n, w: sum(g)),
    )
    if any(len(set(sizes)) > 1 for sizes in samples):  # otherwise, both are right
        yield (
            "every micro-batch has the same weight; one with more samples needs a larger weight",
            made(lambda g, n, w: mean(g)),
        )
        yield (
            "every micro-batch is weighted by the samples of the first one",
            made(lambda g, n, w: sum(g) * n[0] / sum(n)),
        )
    yield (
        "the losses are weighted by their samples, but not divided by the number of all samples",
        made(lambda g, n, w: w * sum(n)),
    )
    by_own = "divided by the samples of this micro-batch, but loss_of already returns a mean"
    yield by_own, made(lambda g, n, w: sum(x / size for x, size in zip(g, n, strict=True)))
    by_all = "divided by the number of samples, but loss_of already returns a micro-batch's mean"
    yield by_all, made(lambda g, n, w: sum(g) / sum(n))
    yield "numel() counts five numbers per sample; len() counts samples", made(lambda g, n, w: w / 5)
    yield "divided by the number of micro-batches twice", made(lambda g, n, w: w / len(g))
    yield "only the last micro-batch is scaled", made(lambda g, n, w: sum(g[:-1]) + g[-1] * n[-1] / sum(n))
    yield "the last micro-batch is not scaled", made(lambda g, n, w: w - g[-1] * n[-1] / sum(n) + g[-1])
    undivided = "the last micro-batch's loss is not divided by the number of all samples"
    yield undivided, made(lambda g, n, w: w + g[-1] * n[-1] * (1 - 1 / sum(n)))
    yield "the last micro-batch is missing", made(lambda g, n, w: w - g[-1] * n[-1] / sum(n))
    cleared = "only the last micro-batch counts: gradients are cleared in between"
    yield cleared, made(lambda g, n, w: g[-1] * n[-1] / sum(n))
    yield cleared, made(lambda g, n, w: g[-1])
    two = "only the last two micro-batches count: gradients are cleared in between"
    yield two, made(lambda g, n, w: sum(x * size for x, size in zip(g[-2:], n[-2:], strict=True)) / sum(n))
    yield "only the first micro-batch counts", made(lambda g, n, w: g[0] * n[0] / sum(n))


def norms(of_ranks, samples, max_norm: float) -> Iterator[tuple[str, list[float]]]:
    """Yield a sentence and the norm that each rank returns."""
    each, ranks = over_samples(of_ranks, samples), range(len(of_ranks))
    whole = mean(each)
    norm, parts = float(whole.norm()), [float(whole[:5].norm()), float(whole[5:].norm())]
    yield "the norm after clipping", [min(norm, max_norm) for _ in ranks]
    yield "the norm after clipping", [max_norm for _ in ranks]
    yield "the norm of this rank's own gradients, before finish()", [float(one.norm()) for one in each]
    yield "read before finish(): a gradient is NaN while it is being sent", [torch.nan for _ in ranks]
    summed = "the sum of the parameters' norms; the total norm is the root of the sum of their squares"
    yield summed, [sum(parts) for _ in ranks]
    yield (
        "the norm of gradients that are not yet divided by the number of samples",
        [norm * sum(samples[r]) for r in ranks],
    )
    yield "the square of the norm", [norm**2 for _ in ranks]
    yield "the largest gradient, not the norm of all", [float(whole.abs().max()) for _ in ranks]
    yield (
        "the sum of the magnitudes; the norm is the root of the sum of squares",
        [float(whole.abs().sum()) for _ in ranks],
    )
    for part in parts:
        yield "the norm of one parameter, not of all together", [part for _ in ranks]
