"""The tensors that all ranks of a group returned, against what they should be: the cause has to fit on every rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates, Wrong
from labs_helpers.course.verdict.trees import Comparison, Difference

BY_HAND = "work out {where} by hand: which products are in it, and which ranks have them?"


def expect_on_ranks(
    case: str,
    name: str,
    found: Sequence,
    expected: Sequence[Tensor],
    bounds: Sequence[Tensor],
    why: str,
    causes: Candidates = (),
    advice: str = BY_HAND,
    nearly: str = "",
    not_finite: str = "",
) -> None:
    """Raises Wrong unless |found − expected| ≤ bound on each rank; lists have one tensor per rank, in float64.

    name: of what was returned, as in "rank 1's grad_x". why: where the bound comes from. causes: their answers are
    lists of one tensor per rank as well, of any shapes. nearly: the cause where all is right to some digits;
    not_finite: where something is infinite or no number, if no other fits.
    """
    for rank, mine in enumerate(found):
        if not isinstance(mine, Tensor):
            raise Wrong(case, f"rank {rank}'s {name} is {_kind(mine)}, not a tensor")

    def roughly(difference: Difference) -> str:
        near = all(a.shape == b.shape and np.abs(a - b).max() <= _some_digits(b) for a, b in difference.pairs)
        return nearly if near else ""

    def infinite(difference: Difference) -> str:
        return "" if all(np.isfinite(a).all() for a, _ in difference.pairs) else not_finite

    Comparison(
        f"rank {{0}}'s {name}", bound=list(bounds), slack=1e-4, why=why, advice=advice, otherwise=(roughly, infinite)
    ).expect(case, list(found), list(expected), lambda: causes)


def expect_dtype(case: str, name: str, found: Sequence[Tensor], dtype: torch.dtype, why: str) -> None:
    """Raises Wrong unless each rank's tensor has this dtype."""
    for rank, mine in enumerate(found):
        if mine.dtype != dtype:
            raise Wrong(case, f"rank {rank}'s {name} is {mine.dtype}, expected {dtype}: {why}")


def off_by(found: Tensor, expected: Tensor, bound: Tensor) -> Tensor:
    """How far each element is beyond its bound: above 0 where it is wrong, infinite where it is not a number."""
    error = (found.double() - expected).abs()
    return torch.where(error.isfinite(), (error - bound).clamp(min=0), torch.inf)


def _some_digits(expected: np.ndarray) -> float:
    """The error up to which it is no coincidence: small beside the numbers, as that of a rounding to 8 bits is."""
    return float(np.abs(expected).max()) * (2.0**-6 if expected.ndim else 2.0**-12)


def _kind(answer) -> str:
    """'None', '3.5', 'of type ndarray'."""
    return repr(answer) if answer is None or isinstance(answer, (int, float)) else f"of type {type(answer).__name__}"
