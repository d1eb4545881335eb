"""The tensors that all ranks of a group returned, against what they should be: the cause has to fit on every rank."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates, Wrong, likely

BY_HAND = "work out {where} by hand: which products are in it, and which ranks have them?"


def expect_on_ranks(
    case: str,
    name: str,
    found: Sequence,
    expected: Sequence[Tensor],
    bounds: Sequence[Tensor],
    why: str,
    causes: Candidates = (),
    advice: str = BY_HAND,
    nearly: str = "",
    not_finite: str = "",
) -> None:
    """Raises Wrong unless |found − expected| ≤ bound on each rank; lists have one tensor per rank, in float64.

    name: of what was returned, as in "rank 1's grad_x". why: where the bound comes from. causes: their answers are
    lists of one tensor per rank as well, of any shapes. nearly: the cause where all is right to some digits;
    not_finite: where something is infinite or no number, if no other fits.
    """

    def fits(answer) -> bool:
        near = all(is_near(*one) for one in zip(found, answer, bounds, strict=True))
        return near and not all(is_near(*one) for one in zip(expected, answer, bounds, strict=True))

    for rank, (mine, right) in enumerate(zip(found, expected, strict=True)):
        if not isinstance(mine, Tensor):
            raise Wrong(case, f"rank {rank}'s {name} is {_kind(mine)}, not a tensor")
        if mine.shape != right.shape:
            shapes = f"rank {rank}'s {name} has shape {tuple(mine.shape)}, expected {tuple(right.shape)}"
            raise Wrong(case, shapes, cause=likely(causes, fits), advice=_other_shape(mine, right))
    offs = [off_by(*one) for one in zip(found, expected, bounds, strict=True)]
    wrong = [rank for rank, off in enumerate(offs) if bool((off > 0).any())]
    if not wrong:
        return
    rank = wrong[0]
    off, mine, right = offs[rank], found[rank].double(), expected[rank]
    at = tuple(int(i) for i in torch.unravel_index(off.argmax(), off.shape)) if off.ndim else ()
    place = f"element {list(at)} of rank {rank}'s {name}" if at else f"rank {rank}'s {name}"
    others = f" (wrong on ranks {', '.join(map(str, wrong))})" if wrong[1:] else ""
    count = f": {int((off > 0).sum())} of {off.numel()} elements are off, the worst is {list(at)}" if at else ""
    bound = float(bounds[rank].expand(right.shape)[at])
    error = float((mine[at] - right[at]).abs())
    slight = f"\n  error {error:.2g}, allowed {bound:.2g} ({why})" if error < 1e3 * bound else ""
    finite = all(bool(one.isfinite().all()) for one in found)
    digits = 7 if f"{mine[at]:.7g}" != f"{right[at]:.7g}" else 16
    raise Wrong(
        case,
        f"{mine[at]:.{digits}g}",
        f"{right[at]:.{digits}g}{slight}",
        f"rank {rank}'s {name}{others}{count}",
        likely(causes, fits) or (nearly if _nearly(found, expected) else "") or ("" if finite else not_finite),
        advice.format(where=place),
    )


def expect_dtype(case: str, name: str, found: Sequence[Tensor], dtype: torch.dtype, why: str) -> None:
    """Raises Wrong unless each rank's tensor has this dtype."""
    for rank, mine in enumerate(found):
        if mine.dtype != dtype:
            raise Wrong(case, f"rank {rank}'s {name} is {mine.dtype}, expected {dtype}: {why}")


def off_by(found: Tensor, expected: Tensor, bound: Tensor) -> Tensor:
    """How far each element is beyond its bound: above 0 where it is wrong, infinite where it is not a number."""
    error = (found.double() - expected).abs()
    return torch.where(error.isfinite(), (error - bound).clamp(min=0), torch.inf)


def is_near(found, answer: Tensor, bound: Tensor) -> bool:
    """Whether a mistake's answer is what a rank returned, up to rounding; not finite exactly where that is not."""
    if not isinstance(found, Tensor) or found.shape != answer.shape:
        return False
    found, answer = found.double(), answer.double()
    near = (found - answer).abs() <= 8 * bound.max() + 1e-4 * answer.abs()
    return bool(torch.where(answer.isfinite(), near, (found == answer) | (found.isnan() & answer.isnan())).all())


def _nearly(found: Sequence[Tensor], expected: Sequence[Tensor]) -> bool:
    """Whether errors are small beside the numbers, as those of a rounding to 8 bits are."""
    errors = [(mine.double() - right).abs().max() for mine, right in zip(found, expected, strict=True)]
    sizes = [right.abs().max() * _some_digits(right) for right in expected]
    return all(bool(error <= size) for error, size in zip(errors, sizes, strict=True))


def _some_digits(expected: Tensor) -> float:
    """The relative error up to which it is no coincidence."""
    return 2.0**-6 if expected.ndim else 2.0**-12


def _kind(answer) -> str:
    """'None', '3.5', 'of type ndarray'."""
    return repr(answer) if answer is None or isinstance(answer, (int, float)) else f"of type {type(answer).__name__}"


def _other_shape(found: Tensor, expected: Tensor) -> str:
    """What to try where a shape is wrong and no cause fits."""
    if found.ndim == expected.ndim == 2 and found.shape == expected.shape[::-1]:
        return "the two dimensions are swapped; see what .T would give."
    if found.numel() == expected.numel():
        return "as many elements as there should be: is it a reshape, or a dimension too many?"
    return "print the shapes of what goes into it."
