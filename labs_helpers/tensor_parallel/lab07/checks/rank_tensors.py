"""The tensors that all ranks of a group returned, against what they should be: the cause has to fit on every rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates, Wrong
from labs_helpers.course.verdict.trees import Comparison, Difference


def expect_on_ranks(
    case: str,
    name: str,
    found: Sequence,
    right: Sequence[Tensor],
    bound: Callable | list[Tensor],
    causes: Callable[[], Candidates],
    dtype: torch.dtype,
    *,
    nearly: str,
    not_finite: str = "",
    **words: str,
) -> None:
    """Raise Wrong unless each rank's tensor is right; causes(): their answers are lists with a tensor per rank.

    name: of what was returned, as in "rank 1's grad_x". nearly: the cause where all is right to some digits;
    not_finite: where something is infinite or no number, if no other fits. words: `why` and `advice` of a Comparison.
    """

    def roughly(difference: Difference) -> str:
        """The error up to which it is no coincidence is small beside the numbers, as that of a rounding to 8 bits."""
        pairs = difference.pairs
        near = all(
            a.shape == b.shape and np.abs(a - b).max() <= np.abs(b).max() * (2.0**-6 if b.ndim else 2.0**-12)
            for a, b in pairs
        )
        return nearly if near and pairs else ""

    def infinite(difference: Difference) -> str:
        return "" if all(np.isfinite(a).all() for a, _ in difference.pairs) else not_finite

    comparison = Comparison(f"rank {{0}}'s {name}", bound=bound, slack=1e-4, otherwise=(roughly, infinite), **words)
    comparison.expect(case, list(found), list(right), causes)
    for rank, mine in enumerate(found):
        if mine.dtype != dtype:
            raise Wrong(case, f"rank {rank}'s {name} is {mine.dtype}, expected {dtype}, as what was given is")
