"""Vectors that ranks are given, and how what they make of them is compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.trees import Comparison, Difference, scaled

NOT_A_NUMBER = (
    "it was read too early, or freed, or never written; NaN is what a tensor holds here from the start of a collective "
    "until its wait(), and freed memory"
)


def float32_sums(found: Any, right: np.ndarray) -> Any:
    """The bound of what sums and divisions in float32 round."""
    return 2e-5 * np.abs(right) + (2e-6 * np.abs(right).max() if right.size else 0.0) + 1e-12


def _not_a_number(difference: Difference) -> str:
    return NOT_A_NUMBER if any(np.isnan(mine).any() for mine, _ in difference.pairs) else ""


def on_each_rank(what: str, advice: str = "") -> Comparison:
    """A comparison of lists with a vector per rank; of each its dtype is compared before, by `expect_tensor`."""
    return Comparison(f"rank {{0}}'s {what}", bound=float32_sums, otherwise=(scaled, _not_a_number), advice=advice)


def expect_tensors(case: str, what: str, found: list, like: list[Tensor]) -> None:
    """Raises Wrong unless every rank has a tensor of the shape of its one in `like`, and the first one's dtype."""
    for rank, (mine, one) in enumerate(zip(found, like, strict=True)):
        expect_tensor(case, f"rank {rank}'s {what}", mine, one)


def expect_tensor(case: str, name: str, found, like: Tensor) -> None:
    """Raises Wrong unless `found` is a tensor of `like`'s shape and dtype."""
    if not isinstance(found, Tensor):
        cause = "a return is missing" if found is None else ""
        raise Wrong(case, f"{name} is {found!r:.60}; a tensor is asked for", cause=cause)
    if found.shape != like.shape:
        raise Wrong(case, f"{name} has shape {tuple(found.shape)}, expected {tuple(like.shape)}")
    if found.dtype != like.dtype:
        raise Wrong(case, f"{name} is {found.dtype}, expected {like.dtype}")


def numbers(n: int, seed: int, whole: bool = True) -> Tensor:
    """(n,) of float32: small integers, whose sums are exact, or normally distributed."""
    generator = torch.Generator().manual_seed(seed)
    if whole:
        return torch.randint(-40, 41, (n,), generator=generator).float()
    return torch.randn(n, generator=generator)
