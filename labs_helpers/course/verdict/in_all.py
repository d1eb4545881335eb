"""Likely causes that fit the answers to all cases, for answers so small that a single one fits too many causes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import eq

from labs_helpers.course.verdict.causes import Candidates, likely


def likely_in_all(
    candidates: Iterable[Candidates], found: Sequence, fits: Callable[[object, object], bool] = eq
) -> tuple[str, ...]:
    """Return the sentences of the candidates that fit in every case if there are one or two of them, otherwise ().

    candidates: those of each case, with the same sentences in the same order. fits(found, answer): whether one fits in
    one case.
    """
    columns = zip(*candidates, strict=True)
    always = ((column[0][0], [answer for _, answer in column]) for column in columns)
    return likely(always, lambda answers: all(map(fits, found, answers)))
