"""Compare greedy tokens of one engine with those of each request alone, where 16-bit rounding may decide a near tie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from labs_helpers.transformer.model import Transformer

ROUNDINGS = 10  # per layer and number, about; see `transformer.decoding_study.BOUND`
DEVIATIONS = 5  # standard deviations that the bound allows


@dataclass(frozen=True)
class Agreement:
    """equal: requests with the same tokens. near_ties: requests whose first different token and its counterpart have
    logits that differ by less than the bound. wrong: the others, by their index."""

    equal: int
    near_ties: int
    wrong: tuple[int, ...]


@torch.no_grad()
def agreement(
    model: Transformer, prompts: Sequence[Sequence[int]], found: Sequence[Sequence[int]], alone: Sequence[Sequence[int]]
) -> Agreement:
    """Compare two answers to each prompt. ValueError for answers of different lengths.

    After a different token the texts differ, so only the first one counts. Its logits come from the model itself,
    recomputed from all tokens before.
    """
    equal, near, wrong = 0, 0, []
    for number, (prompt, one, other) in enumerate(zip(prompts, found, alone, strict=True)):
        if len(one) != len(other):
            raise ValueError(f"request {number} has {len(one)} tokens, and alone {len(other)}")
        first = next((i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), None)
        if first is None:
            equal += 1
            continue
        tokens = torch.tensor([[*prompt, *one[:first]]], device=model.norm.weight.device)
        logits = model(tokens)[0, -1].float()
        if float(logits.max() - logits[[one[first], other[first]]].min()) < bound(logits, model.config.layers):
            near += 1
        else:
            wrong.append(number)
    return Agreement(equal, near, tuple(wrong))


def bound(logits: Tensor, layers: int) -> float:
    """Return how much two logits may differ and still change places in another order of summation.

    A number is rounded to bfloat16 about ROUNDINGS times per layer, each time by 2⁻⁸/√3 of itself on average at most,
    and the roundings add up like a random walk. Two computations of two logits: √4 times one logit's deviation.
    """
    deviation = float(logits.pow(2).mean().sqrt()) * (ROUNDINGS * layers) ** 0.5 * 2.0**-8 / 3**0.5
    return DEVIATIONS * 2 * deviation
