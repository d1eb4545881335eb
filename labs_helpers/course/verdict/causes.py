"""Candidate causes: what common mistakes would give, held against what an answer gave.

A check hands them over as an iterable of pairs (sentence, what the answer would be), most simply a generator, so
that nothing of it is computed for a right answer:

    def causes(x, y):
        yield "both loads read x", 2 * x
        yield "y is not added", x

A cause is named only where it is the only one that fits; where two fit, both are. A third that fits would make it a
guess, and then none is named. A mistake that would have shown in an earlier case, which passed, was not made:
`still_possible` leaves its candidates out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

Candidates = Iterable[tuple[str, object]]
Passed = tuple[Candidates, Callable[[object], bool]]  # of a passed case: its candidates, and which answer is right


def likely(candidates: Candidates, fits: Callable[[object], bool]) -> tuple[str, ...]:
    """The sentences of the candidates whose answer `fits`: one or two of them, else ()."""
    found: list[str] = []
    for sentence, answer in candidates:
        if sentence not in found and fits(answer):
            found.append(sentence)
    return tuple(found) if len(found) <= 2 else ()


def still_possible(candidates: Candidates, passed: Iterable[Passed]) -> Iterator[tuple[str, object]]:
    """`candidates` without those whose sentence stands for a wrong answer in one of the cases `passed`.

    A sentence with several candidates is left out where none of them is right there; of one that a case does not have
    the case tells nothing."""
    candidates, ruled_out = list(candidates), set()
    sentences = {sentence for sentence, _ in candidates}
    for earlier, is_right in passed:
        known = [(sentence, is_right(answer)) for sentence, answer in earlier if sentence in sentences]
        ruled_out |= {sentence for sentence, _ in known} - {sentence for sentence, right in known if right}
    yield from (candidate for candidate in candidates if candidate[0] not in ruled_out)
