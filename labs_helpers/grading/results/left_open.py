"""Which of a check's cases an answer has not passed, in the words of the check of the reference."""

from __future__ import annotations

from collections.abc import Sequence


def still_to_pass(passed: Sequence[str], all_cases: Sequence[str]) -> list[str]:
    """All cases but for those that passed, in order. A line may name what the answer itself did, and then
    differs from the reference's; as a check goes through its cases in order, the first ones are those that passed."""
    if set(passed) <= set(all_cases):
        waiting = list(all_cases)
        for case in passed:
            if case in waiting:
                waiting.remove(case)
        return waiting
    return list(all_cases[len(passed) :])
