"""Select the candidate causes that explain an error, rather than being merely close to the right answer."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from labs_helpers.course.verdict import Candidates


def explaining(candidates: Candidates, found, right: torch.Tensor, bound: torch.Tensor) -> Iterator[tuple[str, object]]:
    """Yield the candidates that explain three quarters or more of the excess error in `found`; all if there is none.

    The excess error is the sum of |found − right| − `bound` over the finite elements. A tolerance would not do: a
    value that is rounded too early is off by a thousandth, and at that tolerance every kind of rounding would match.
    """
    got = found.detach().cpu().double()
    finite = got.isfinite() & right.isfinite()

    def too_much(answer: torch.Tensor) -> float:
        return float(((got - answer).abs() - bound)[finite].clamp(min=0).nan_to_num(nan=torch.inf).sum())

    error = None
    for sentence, answer in candidates:
        error = too_much(right) if error is None else error
        answer = torch.as_tensor(answer, dtype=torch.float64)
        if not error or answer.shape != got.shape or too_much(answer) <= error / 4:
            yield sentence, answer
