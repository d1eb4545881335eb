"""Candidate causes: what common mistakes would give, held against what an answer gave.

A check hands them over as an iterable of pairs (sentence, what the answer would be), most simply a generator, so
that nothing of it is computed for a right answer:

    def causes(x, y):
        yield "both loads read x", 2 * x
        yield "y is not added", x

A cause is named only where it is the only one that fits; where two fit, both are. A third that fits would make it a
guess, and then none is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Candidates = Iterable[tuple[str, object]]


def likely(candidates: Candidates, fits: Callable[[object], bool]) -> tuple[str, ...]:
    """The sentences of the candidates whose answer `fits`: one or two of them, else ()."""
    found: list[str] = []
    for sentence, answer in candidates:
        if sentence not in found and fits(answer):
            found.append(sentence)
    return tuple(found) if len(found) <= 2 else ()
