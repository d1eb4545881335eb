"""Vectors for the ranks, and the comparison of their results."""

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
    "the tensor was read too early, freed, or never written. Here a "
    "tensor contains NaN from the start of a collective "
    "until its wait(), and so does freed memory"
)


def float32_sums(found: Any, right: np.ndarray) -> Any:
    """Return the rounding error that sums and divisions in float32 may cause."""
    return 2e-5 * np.abs(right) + (2e-6 * np.abs(right).max() if right.size else 0.0) + 1e-12


def _not_a_number(sentence: str, difference: Difference) -> str:
    return sentence if any(np.isnan(mine).any() for mine, _ in difference.pairs) else ""


class RankTensors(Comparison):
    """Compare lists that hold one tensor per rank. nan: the cause to name for a NaN."""

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
        """Raise Wrong unless every rank has the right tensor with this dtype. none: the cause to name for a None."""
        for rank, one in enumerate(found):
            if not isinstance(one, Tensor):
                cause = (
                    none_returned(found, none)
                    if one is None
                    else ".item() converts a tensor into a number" * isinstance(one, float)
                )
                raise Wrong(case, f"{self.place((rank,))} is {one!r:.60}; expected a tensor", cause=cause)
            if one.dtype != dtype:
                raise Wrong(case, f"{self.place((rank,))} is {one.dtype}, expected {dtype}")
        super().expect(case, found, right, causes)


def numbers(n: int, seed: int, whole: bool = True) -> Tensor:
    """Return (n,) of float32: small integers, whose sums are exact, or normally distributed numbers."""
    generator = torch.Generator().manual_seed(seed)
    if whole:
        return torch.randint(-40, 41, (n,), generator=generator).float()
    return torch.randn(n, generator=generator)
