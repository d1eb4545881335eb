"""Gradients of a step over micro-batches on several ranks: the right ones, and what common mistakes give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor


def gradients_of(batches: Sequence[Tensor]) -> list[Tensor]:
    """Of each micro-batch's mean loss, (6,) in float64: of the check's weight and bias."""
    weight = torch.cat([torch.linspace(-1, 1, 5), torch.tensor([0.3])]).double()
    found = []
    for batch in batches:
        x = torch.cat([batch.double(), torch.ones(len(batch), 1, dtype=torch.float64)], dim=1)
        found.append(2 * x.T @ (x @ weight) / len(x))
    return found


def clipped(gradient: Tensor, max_norm: float) -> Tensor:
    return gradient * min(1.0, max_norm / max(float(gradient.norm()), 1e-30))


def weighted(of_batches, samples) -> Tensor:
    return sum(g * n for g, n in zip(of_batches, samples, strict=True)) / sum(samples)


def mean(some: Sequence[Tensor]) -> Tensor:
    return sum(some) / len(some)


def right_step(of_ranks, samples, max_norm: float) -> tuple[Tensor, float]:
    """(gradients, their norm before they are clipped)"""
    whole = mean([weighted(*one) for one in zip(of_ranks, samples, strict=True)])
    return clipped(whole, max_norm), float(whole.norm())


def close(found: Tensor, right: Tensor) -> bool:
    return bool((found.double() - right).abs().max() <= 1e-4 * right.abs().max())


def _scalings(of_ranks, samples):
    """(sentence, each rank's gradients before they are averaged) of a wrong scale."""
    equal = all(len(set(sizes)) == 1 for sizes in samples)
    pairs = list(zip(of_ranks, samples, strict=True))
    yield "", [weighted(*one) for one in pairs]
    yield "the losses are added up: each micro-batch counts with its share of the samples", [sum(g) for g, _ in pairs]
    if not equal:
        yield (
            "every micro-batch counts the same; a larger one has more samples, and counts more",
            [mean(g) for g, _ in pairs],
        )
    yield (
        "the losses count with their samples, and are not divided by all samples",
        [weighted(*one) * sum(one[1]) for one in pairs],
    )
    yield (
        "divided by the samples of this micro-batch; loss_of is a mean already",
        [sum(g / n for g, n in zip(*one, strict=True)) for one in pairs],
    )
    yield (
        "divided by the number of samples; loss_of is a mean over a micro-batch already",
        [sum(g) / sum(n) for g, n in pairs],
    )
    yield (
        "numel() counts numbers, five per sample; len() counts samples",
        [weighted(*one) / 5 for one in pairs],
    )
    yield "divided by the number of micro-batches twice", [weighted(*one) / len(one[0]) for one in pairs]
    yield "only the last micro-batch is scaled", [sum(g[:-1]) + g[-1] * n[-1] / sum(n) for g, n in pairs]
    yield "the last micro-batch is not scaled", [weighted(g, n) - g[-1] * n[-1] / sum(n) + g[-1] for g, n in pairs]
    yield "the last micro-batch is missing", [weighted(g, n) - g[-1] * n[-1] / sum(n) for g, n in pairs]
    yield (
        "only the last micro-batch counts: gradients are cleared in between",
        [g[-1] * n[-1] / sum(n) for g, n in pairs],
    )
    yield "only the last micro-batch counts: gradients are cleared in between", [g[-1] for g, _ in pairs]
    yield (
        "only the last two micro-batches count: gradients are cleared in between",
        [weighted(g[-2:], n[-2:]) * sum(n[-2:]) / sum(n) for g, n in pairs],
    )
    if not equal:
        yield "every micro-batch counts with the samples of the first", [sum(g) * n[0] / sum(n) for g, n in pairs]
    yield "only the first micro-batch counts", [g[0] * n[0] / sum(n) for g, n in pairs]


def mistakes(of_ranks, samples, max_norm: float) -> Iterator[tuple[str, list[Tensor]]]:
    """(sentence, each rank's gradients after the step)"""
    p = len(of_ranks)
    for sentence, each in _scalings(of_ranks, samples):
        whole = mean(each)
        if sentence:
            yield sentence, [clipped(whole, max_norm)] * p
            yield sentence, [whole] * p
            continue
        yield "nothing is clipped", [whole] * p
        yield (
            "clipped before finish(): each rank's own gradients, not their mean",
            [mean([clipped(one, max_norm) for one in each])] * p,
        )
        yield (
            "averaged once more: finish() has divided by the number of ranks already",
            [clipped(whole / p, max_norm)] * p,
        )
        yield (
            "averaged once more: finish() has divided by the number of ranks already",
            [clipped(whole, max_norm) / p] * p,
        )
        yield (
            "each value is clipped; the norm is that of all gradients together",
            [whole.clamp(-max_norm, max_norm)] * p,
        )
        parts = torch.cat([clipped(whole[:5], max_norm), clipped(whole[5:], max_norm)])
        yield "each parameter is clipped by itself; the norm is that of all gradients together", [parts] * p
        yield "scaled to max_norm although the norm is smaller", [whole * max_norm / float(whole.norm())] * p
        yield "max_norm is divided by the number of ranks", [clipped(whole, max_norm / p)] * p
        yield "clipped to 1, whatever max_norm is", [clipped(whole, 1.0)] * p
        grown = []
        for g, n in zip(of_ranks, samples, strict=True):
            total = torch.zeros_like(g[0])
            for one, size in zip(g[:-1], n[:-1], strict=True):
                total = clipped(total + one * size / sum(n), max_norm)
            grown.append(total + g[-1] * n[-1] / sum(n))
        yield "clipped after each micro-batch, not once for the whole step", [clipped(mean(grown), max_norm)] * p
        yield (
            "each rank keeps its own gradients: finish() comes too late, or not at all",
            [clipped(one, max_norm) for one in each],
        )


def norms(of_ranks, samples, max_norm: float, rank: int) -> Iterator[tuple[str, float]]:
    """(sentence, what is returned for a norm)"""
    each = [weighted(*one) for one in zip(of_ranks, samples, strict=True)]
    whole = mean(each)
    yield "the norm after clipping", float(clipped(whole, max_norm).norm())
    yield "the norm after clipping", max_norm
    yield "the norm of this rank's own gradients, before finish()", float(each[rank].norm())
    yield "read before finish(): what is under way is not a number yet", torch.nan
    yield (
        "the sum of the parameters' norms; the norm of all is the root of the sum of their squares",
        float(whole[:5].norm() + whole[5:].norm()),
    )
    yield "the norm of gradients that are not divided by the samples yet", float(whole.norm()) * sum(samples[rank])
    yield "the square of the norm", float(whole.norm()) ** 2
    yield "the largest gradient, not the norm of all", float(whole.abs().max())
    yield "the sum of the magnitudes; the norm is the root of the sum of squares", float(whole.abs().sum())
    yield "the norm of one parameter, not of all together", float(whole[:5].norm())
    yield "the norm of one parameter, not of all together", float(whole[5:].norm())
