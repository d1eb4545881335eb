"""Compare an answer with the right result: tensors within a bound derived from the arithmetic, everything else
exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

import numpy as np
import torch

from labs_helpers.course.verdict.causes import Candidates, likely
from labs_helpers.course.verdict.picture import elements
from labs_helpers.course.verdict.wrong import Wrong

# Relative spacing of a dtype's numbers; the error of one rounding is at most half of it.
_UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
BY_HAND = "compute {where} by hand and follow the code step by step."


def matmul_bound(expected, magnitude, K: int, dtype) -> torch.Tensor:
    """Return, for each element, the largest error of a float32 accumulation of length K, rounded once to `dtype`.

    expected: the float64 result. magnitude: Σ|a||b| (+ |c|), float64, same shape. A sum of K products in float32 is off
    by at most K·2⁻²⁴ of that (Higham, Accuracy and Stability of Numerical Algorithms, §3.1).
    """
    subnormal = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    return _UNIT[dtype] * expected.abs() + (K + 4) * 2.0**-24 * magnitude + subnormal


def expect_close(
    case: str,
    found,
    expected,
    bound,
    why: str,
    causes: Candidates = (),
    name: str = "",
    advice: str | Callable[[], str] = BY_HAND,
) -> None:
    """Raise Wrong unless |found − expected| ≤ bound everywhere; an expected −inf must be −inf.

    found: the answer's tensor, called `name`. expected: float64, same shape. bound: a number, or one per element; `why`
    says how it was derived. advice: shown if no cause fits, with the place of the error for {where}; a function is
    called only if there is an error.
    """
    where = f"{name}: " if name else ""
    if not isinstance(found, torch.Tensor):
        raise Wrong(case, f"returned {type(found).__name__} {found!r}, not a tensor", where=where)
    if tuple(found.shape) != tuple(expected.shape):
        raise Wrong(case, f"has shape {tuple(found.shape)}, expected {tuple(expected.shape)}", where=where)
    got = found.detach().cpu().double()
    bound = torch.as_tensor(bound, dtype=torch.float64).expand(expected.shape)
    error = _error(got, expected)
    off = ~(error <= bound)
    if not bool(off.any()):
        return
    excess = torch.where(torch.isnan(error), torch.inf, error - bound)
    worst = tuple(int(i) for i in torch.unravel_index(excess.argmax(), excess.shape)) if excess.ndim else ()
    fitting = likely(causes, lambda answer: _near(got, answer, bound) and not is_within(answer, expected, bound))
    fitting = fitting or _by_factor(got, expected, bound) or _in_fewer_bits(found, expected)
    not_finite = ~got.isfinite() & (got != expected)
    advice = advice() if callable(advice) else advice
    allowed = "" if not_finite.any() else f"\n  error {error[worst]:.2g}, allowed {bound[worst]:.2g} ({why})"
    raise Wrong(
        case,
        f"{got[worst]:.7g}",
        f"{expected[worst]:.7g}{allowed}",
        f"{where}{int(off.sum()):,} of {off.numel():,} elements are off{_region(off)}; the worst is at {list(worst)}",
        fitting,
        _not_finite(got[worst]) or advice.format(where=f"element {list(worst)}"),
        elements(
            name or "the result",
            {"right": ~off, "not finite": off & not_finite, "wrong": off & ~not_finite},
            found,
            f"{int(off.sum()):,} of {off.numel():,} elements of {name or 'the result'} are wrong",
        ),
    )


def expect_number(
    case: str, name: str, found, expected, causes: Candidates = (), within: float = 0.0, advice: str = BY_HAND
) -> None:
    """Raise Wrong unless the number `found`, called `name`, is `expected` up to a relative error of `within`.

    A candidate's result may be one number or several alternatives; if `within` is not 0, it fits up to a relative 1e-3.
    """
    is_number = isinstance(found, Real) and not isinstance(found, bool)
    near = is_number and within and math.isfinite(expected) and abs(found - expected) <= within * abs(expected)
    if found == expected or near:
        return

    def fits(answer) -> bool:
        near = 1e-3 if within else 0.0
        return any(
            found == value or (math.isfinite(value) and abs(found - value) <= near * abs(value))
            for value in np.atleast_1d(answer)
        )

    shown = [f"{x:,}" if isinstance(x, int) else f"{x:.6g}" for x in (found, expected)] if is_number else []
    got, wanted = shown or (repr(found), f"{expected:,}")
    fitting = likely(causes, fits) if is_number else ()
    raise Wrong(
        case, f"{name} is {got}, expected {wanted}", cause=fitting, advice=advice.format(where=f"{name} for this case")
    )


def _error(found, expected):
    """Return |found − expected|, with 0 between infinities of the same sign."""
    return torch.where(found == expected, 0.0, (found - expected).abs())


def _near(got, answer, bound) -> bool:
    """Tell whether `answer`, the result of a mistake, equals the student's within rounding and is not finite in the
    same places."""
    answer = torch.as_tensor(answer, dtype=torch.float64)
    if answer.shape != got.shape:
        return False
    largest = answer.abs().where(answer.isfinite(), 0.0).amax() if answer.numel() else 0.0
    near = (got - answer).abs() <= 4 * bound + 1e-3 * answer.abs().clamp(min=1e-3) + 1e-6 * largest
    # A value that is not finite must match exactly: a tolerance relative to it would accept everything.
    near = torch.where(answer.isfinite(), near, (got == answer) | (got.isnan() & answer.isnan()))
    return bool(near.all())


def _by_factor(got, expected, bound) -> str:
    """Return the cause if every element is wrong by the same factor, otherwise ''."""
    kept = (expected.abs() > 0.1 * expected.abs().nan_to_num(posinf=0.0).amax()) & got.isfinite() & expected.isfinite()
    factor = float((got / expected)[kept].median()) if bool(kept.any()) else 1.0
    if not (1e-3 < abs(factor) < 1e3 and abs(factor - 1) > 1e-2 and _near(got, factor * expected, bound)):
        return ""
    known = {f"1/{n}": 1 / n for n in range(3, 1025)} | {"log2(e)": math.log2(math.e), "1/log2(e)": math.log(2)}
    one = next((f", {text}" for text, c in known.items() if abs(factor / c - 1) < 1e-4), "")
    return f"every element is {factor:.4g} times the right value{one}: a factor or a division is missing or superfluous"


def _in_fewer_bits(found, expected) -> str:
    """Return the cause if all elements, but not all right ones, fit a narrower dtype; otherwise ''."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        same, right_too = (torch.equal(x.to(dtype).to(x.dtype), x) for x in (found.detach(), expected))
        if found.element_size() > dtype.itemsize and same and not right_too and found.unique().numel() > 5:
            return (
                f"every element is exact in {str(dtype)[6:]}: the result was rounded to that dtype before it was stored"
            )
    return ""


def is_within(answer, expected, bound) -> bool:
    """Tell whether a candidate's result is right in this case, as for a lost tail if there is no tail. False for
    another shape."""
    answer = torch.as_tensor(answer, dtype=torch.float64)
    if answer.shape != expected.shape:
        return False
    return bool((_error(answer, expected) <= bound).all())


def _not_finite(worst) -> str:
    """Return advice on the likely source of a NaN or an infinity; '' for a finite element."""
    if worst.isnan():
        return (
            "find the first step that gives NaN. inf − inf, 0/0 and the square root of a negative number give "
            "NaN; a masked load without other= returns undefined values, and an element that no program stores "
            "to is undefined, too."
        )
    if worst.isinf():
        return "find the first step that gives inf: exp(x) beyond x = 88, a division by 0, float16 beyond 65,504."
    return ""


def _region(bad) -> str:
    """Return the rows and columns that contain all bad elements of a matrix or of several; '' if they are spread
    over all of it."""
    if bad.ndim < 2 or bool(bad.all()):
        return ""
    bad = bad.flatten(0, -3).any(0) if bad.ndim > 2 else bad
    rows, columns = bad.any(1).nonzero().flatten(), bad.any(0).nonzero().flatten()
    first, last = (int(rows[0]), int(columns[0])), (int(rows[-1]), int(columns[-1]))
    if first == (0, 0) and last == (bad.shape[0] - 1, bad.shape[1] - 1):  # the whole matrix, which says nothing
        return ""
    return f" in rows {first[0]} to {last[0]} and columns {first[1]} to {last[1]} of {bad.shape[0]}×{bad.shape[1]}"
