"""Whether a partly right answer is right for a hidden input too, or in its check alone, as a table of its cases is.

What can be right by chance is no proof: what another seed's inputs give too, a truth value, and a few small numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from labs_helpers.grading.hidden.values import Near, difference

SMALL = 1000  # whole numbers below it can be guessed
FEW = 8  # elements of a tensor that are looked at one by one, as a function's several results are
ENOUGH = 3  # different results that can be guessed, each of them right


def any_right(found: Sequence[Any], expected: Sequence[Any], other: Sequence[Any]) -> bool:
    """found: what an answer gives for hidden inputs, up to the one for which it raises. expected: what the reference
    gives, and `other` for another seed. All are lists of what `values.read` gives.

    True where a tensor in it is right, two large numbers, or several smaller results; and where that proves nothing,
    because the reference's own results can all be guessed.
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
    return len(numbers) > 1 or len(whole) >= ENOUGH  # of the same number again and again one is right by chance


def _telling(found: Any, expected: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """(part of found, the same of expected) for the parts of expected that another seed's inputs do not give."""
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
