"""Decide whether a partly right answer is also right for some hidden input, or only for the cases of its check.

Some right results prove nothing, because they may be chance: results that another seed's inputs also give, truth
values, and small numbers if there are only a few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from labs_helpers.grading.hidden.values import Near, difference

SMALL = 1000  # smaller whole numbers can be guessed
FEW = 8  # a tensor with at most so many elements is compared element by element, like a tuple of results
ENOUGH = 3  # so many different right results prove something, even if each could be guessed


def any_right(found: Sequence[Any], expected: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return True if a tensor, two large numbers or several smaller results of `found` are right, or if all of the
    reference's results can be guessed, so that none could prove anything.

    found: an answer's results for hidden inputs, until an input makes it raise. expected: the reference's results.
    other: the reference's results for another seed. All are lists as `values.read` returns them.
    """
    return _proved(found, expected, other) or not _proved(expected, expected, other)


def _proved(found: Sequence[Any], expected: Sequence[Any], other: Sequence[Any]) -> bool:
    numbers, whole = set(), set()
    for got, right, elsewhere in zip(found, expected, [*other, *[None] * len(expected)], strict=False):
        hard = [
            part for its, part in _telling(got, right, elsewhere) if _hard_to_guess(part) and not difference(its, part)
        ]
        if any(isinstance(part, torch.Tensor) and part.numel() > 1 for part in hard):
            return True
        numbers |= {repr(part) for part in hard}
        parts = [part for _, part in _telling(right, right, elsewhere) if not isinstance(part, bool)]
        if parts and not difference(got, right):
            whole.add(repr(right))
            if len(parts) >= ENOUGH:
                return True
    return len(numbers) > 1 or len(whole) >= ENOUGH  # the same number twice can be right by chance


def _telling(found: Any, expected: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (part of found, same part of expected) for each part of expected that differs for another seed."""
    if isinstance(expected, dict) and isinstance(found, dict):
        others = other if isinstance(other, dict) else {}
        for key in expected.keys() & found.keys():
            yield from _telling(found[key], expected[key], others.get(key))
    elif isinstance(expected, list) and isinstance(found, list):
        elsewhere = [*(other if isinstance(other, list) else []), *[None] * len(expected)]
        for its, part, another in zip(found, expected, elsewhere, strict=False):
            yield from _telling(its, part, another)
    elif isinstance(expected, torch.Tensor) and 1 < expected.numel() <= FEW and _alike(found, expected):
        parts = [part.reshape(-1).split(1) if _alike(part, expected) else () for part in (found, expected, other)]
        yield from _telling(*map(list, parts))
    elif expected is not None and difference(expected, other):
        yield found, expected


def _alike(found: Any, expected: torch.Tensor) -> bool:
    return isinstance(found, torch.Tensor) and found.shape == expected.shape


def _hard_to_guess(part: Any) -> bool:
    if isinstance(part, torch.Tensor) and part.numel() == 1:
        part = part.item()
    if isinstance(part, torch.Tensor):
        return len(part.unique()) > ENOUGH
    if isinstance(part, Near):
        return True
    if isinstance(part, bool) or not isinstance(part, int | float):
        return False
    return abs(part) >= SMALL or (isinstance(part, float) and part % 0.5 != 0)
