"""Causes that are held against the answers to all cases, where one answer alone fits too many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import eq

from labs_helpers.course.verdict.causes import Candidates, likely


def likely_in_all(
    candidates: Iterable[Candidates], found: Sequence, fits: Callable[[object, object], bool] = eq
) -> tuple[str, ...]:
    """The sentences of the candidates that fit what was found in every case: one or two of them, else ().

    candidates: those of each case, the same sentences in the same order. fits(found, answer): in one case."""
    columns = zip(*candidates, strict=True)
    always = ((column[0][0], [answer for _, answer in column]) for column in columns)
    return likely(always, lambda answers: all(map(fits, found, answers)))
