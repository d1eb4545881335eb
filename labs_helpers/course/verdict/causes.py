"""Likely causes: compare an answer with the results of common mistakes.

A check passes them as an iterable of pairs (sentence, result of that mistake), usually a generator, so that a right
answer computes none of them:

    def causes(x, y):
        yield "both loads read x", 2 * x
        yield "y is not added", x

If one candidate fits, the message names it; if two fit, it names both. If three or more fit, naming them would be a
guess, so the message names none. `still_possible` drops a mistake that an earlier case, which passed, would have
revealed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

Candidates = Iterable[tuple[str, object]]
Passed = tuple[
    Candidates, Callable[[object], bool]
]  # of a passed case: its candidates, and the test for a right answer


def likely(candidates: Candidates, fits: Callable[[object], bool]) -> tuple[str, ...]:
    """Return the sentences of the candidates whose result `fits` if there are one or two of them, otherwise ()."""
    found: list[str] = []
    for sentence, answer in candidates:
        if sentence not in found and fits(answer):
            found.append(sentence)
    return tuple(found) if len(found) <= 2 else ()


def still_possible(candidates: Candidates, passed: Iterable[Passed]) -> Iterator[tuple[str, object]]:
    """Return `candidates` without those that would have given a wrong answer in one of the cases `passed`.

    A sentence with several candidates is dropped if none of them is right in such a case. A case that lacks a sentence
    says nothing about it.
    """
    candidates, ruled_out = list(candidates), set()
    sentences = {sentence for sentence, _ in candidates}
    for earlier, is_right in passed:
        known = [(sentence, is_right(answer)) for sentence, answer in earlier if sentence in sentences]
        ruled_out |= {sentence for sentence, _ in known} - {sentence for sentence, right in known if right}
    yield from (candidate for candidate in candidates if candidate[0] not in ruled_out)
