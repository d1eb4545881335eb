"""Which of the candidate causes explain an error, and not only stand near the right answer, as the error does."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from labs_helpers.course.verdict import Candidates


def explaining(candidates: Candidates, found, right: torch.Tensor, bound: torch.Tensor) -> Iterator[tuple[str, object]]:
    """Those of `candidates` under which no more is left than a quarter of what is too much in `found`, lazily; all of
    them where nothing is.

    What is too much: the sum of |found − right| beyond `bound`, over the elements that are finite. A value that is
    rounded too early is off by a thousandth, and a tolerance of that size would let every rounding pass for it.
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
