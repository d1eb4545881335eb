"""Causes that apply to any numbers (a factor, rounding, their order), tried if no mistake of an exercise fits.

They are `otherwise` of a `Comparison` (trees.py): functions of a Difference that return a sentence or ''.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from labs_helpers.course.verdict.trees import Difference, as_array, within


def scaled(difference: Difference) -> str:
    """Return the cause if every number is wrong by the same factor."""
    pairs = [pair for pair in difference.pairs if pair[0].shape == pair[1].shape]
    if not pairs or sum(a.size for a, _ in pairs) < 2:
        return ""
    mine, one = (np.concatenate([pair[side].astype(float).ravel() for pair in pairs]) for side in (0, 1))
    kept = np.abs(one) > 1e-6 * np.abs(one).max()
    if not kept.any() or not np.isfinite(mine).all():
        return ""
    ratios = mine[kept] / one[kept]
    same = (np.abs(ratios - ratios[0]) <= 1e-4 * abs(ratios[0])).all() and (np.abs(mine[~kept]) < 1e-3).all()
    times = f"{ratios[0]:.4g}"
    if not same or not ratios[0] or times == "1":
        return ""
    return f"every number is {times} times the right value: a factor or a division"


def fewer_bits(difference: Difference) -> str:
    """Return the cause if every wrong number is the right one, rounded about as much as float16 or bfloat16 would."""
    pairs = [(as_array(difference.found[path]), as_array(difference.right[path])) for path in difference.wrong]
    if any(a is None or b is None or a.shape != b.shape for a, b in pairs):
        return ""
    kinds = {path: getattr(leaf, "dtype", None) for path, leaf in difference.found.items()}
    alike = [path for path in kinds.keys() - {*difference.wrong} if kinds[path] in map(kinds.get, difference.wrong)]
    for coarse in (torch.float16, torch.bfloat16):
        near = all(within(a, b, 0.0, torch.finfo(coarse).eps).all() for a, b in pairs)
        # If a right number has more bits than that, rounding would have changed it, too.
        if near and all(_holds(coarse, as_array(difference.right[path])) for path in alike):
            return "the numbers are right but rounded: some intermediate result had fewer bits than its dtype"
    return ""


def _holds(dtype: torch.dtype, array: np.ndarray | None) -> bool:
    """Tell whether a dtype represents all numbers of an array exactly."""
    return array is None or bool((torch.from_numpy(array.astype(float)).to(dtype).double().numpy() == array).all())


def nearly(sentence: str) -> Callable[[Difference], str]:
    """Return the cause `sentence` if every number is right to some digits, relative to the largest of its array.

    Some of them must be within a rounding to 8 bits; of single numbers twice as many, because few may be close by
    chance.
    """

    def cause(difference: Difference) -> str:
        pairs = [pair for pair in difference.pairs if pair[0].shape == pair[1].shape]
        digits = 2.0**-6 if any(b.ndim for _, b in pairs) else 2.0**-12
        near = all(np.abs(a - b).max(initial=0) <= digits * np.abs(b).max(initial=0) for a, b in pairs)
        return sentence if near and pairs else ""

    return cause


def not_finite(sentence: str) -> Callable[[Difference], str]:
    """Return the cause `sentence` if a number is infinite or NaN."""
    return lambda difference: "" if all(np.isfinite(a).all() for a, _ in difference.pairs) else sentence


def moved(difference: Difference) -> str:
    """Return the cause if the elements are right but their shape or order is wrong."""
    pairs = difference.pairs
    if any(a.size != b.size for a, b in pairs):
        return ""
    if all((a.ravel() == b.ravel()).all() for a, b in pairs):
        return "the elements and their order are right: only a reshape is missing"
    if all((np.sort(a, axis=None) == np.sort(b, axis=None)).all() for a, b in pairs):
        return "each rank has the right elements in the wrong order: follow the axes from line to line"
    return ""
