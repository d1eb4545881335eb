"""Vectors that ranks are given, and how what they make of them is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates, Wrong
from labs_helpers.course.verdict.returned import none_returned
from labs_helpers.course.verdict.tree_causes import scaled
from labs_helpers.course.verdict.trees import Comparison, Difference

NOT_A_NUMBER = (
    "it was read too early, or freed, or never written; NaN is what a tensor holds here from the start of a collective "
    "until its wait(), and freed memory"
)


def float32_sums(found: Any, right: np.ndarray) -> Any:
    """The bound of what sums and divisions in float32 round."""
    return 2e-5 * np.abs(right) + (2e-6 * np.abs(right).max() if right.size else 0.0) + 1e-12


def _not_a_number(sentence: str, difference: Difference) -> str:
    return sentence if any(np.isnan(mine).any() for mine, _ in difference.pairs) else ""


class RankTensors(Comparison):
    """A comparison of lists with a tensor per rank. nan: the cause of a NaN."""

    def __init__(self, what: str, advice: str = "", nan: str = NOT_A_NUMBER) -> None:
        otherwise = scaled, partial(_not_a_number, nan)
        super().__init__(f"rank {{0}}'s {what}", bound=float32_sums, otherwise=otherwise, advice=advice)

    def expect(
        self,
        case: str,
        found: Sequence[Any],
        right: Sequence[Tensor],
        causes: Callable[[], Candidates] = lambda: (),
        dtype: torch.dtype = torch.float32,
        none: str = "a return is missing",
    ) -> None:
        """Raise Wrong unless every rank has a tensor of this dtype that is right. none: the cause of a None."""
        for rank, one in enumerate(found):
            if not isinstance(one, Tensor):
                cause = (
                    none_returned(found, none)
                    if one is None
                    else ".item() makes a number of a tensor" * isinstance(one, float)
                )
                raise Wrong(case, f"{self.place((rank,))} is {one!r:.60}; a tensor is asked for", cause=cause)
            if one.dtype != dtype:
                raise Wrong(case, f"{self.place((rank,))} is {one.dtype}, expected {dtype}")
        super().expect(case, found, right, causes)


def numbers(n: int, seed: int, whole: bool = True) -> Tensor:
    """(n,) of float32: small integers, whose sums are exact, or normally distributed."""
    generator = torch.Generator().manual_seed(seed)
    if whole:
        return torch.randint(-40, 41, (n,), generator=generator).float()
    return torch.randn(n, generator=generator)
