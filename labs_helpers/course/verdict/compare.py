"""Compare a result with its float64 reference under a bound that follows from the arithmetic."""

from __future__ import annotations

import torch

from labs_helpers.course.verdict.wrong import Wrong

# Relative spacing of a dtype's numbers: half of it is the largest error of one rounding.
_UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def matmul_bound(expected, magnitude, K: int, dtype) -> torch.Tensor:
    """The largest error of a K-long float32 accumulation, rounded once to `dtype`: one number an element.

    expected: float64 result. magnitude: Σ|a||b| (+ |c|), float64, same shape. A sum of K products in float32
    is off by at most K·2⁻²⁴ of that (Higham, Accuracy and Stability of Numerical Algorithms, §3.1).
    """
    subnormal = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    return _UNIT[dtype] * expected.abs() + (K + 4) * 2.0**-24 * magnitude + subnormal


def close(actual, expected, bound, case: str, why: str, suspects: dict | None = None) -> None:
    """Raises Wrong unless |actual − expected| ≤ bound everywhere.

    actual: the result. expected: float64 of the same shape. bound: a number or one an element, and `why` says
    where it comes from. suspects: text → what a common mistake would have given; the one that fits is named.
    """
    if not isinstance(actual, torch.Tensor):
        raise Wrong(case, f"returned {type(actual).__name__} {actual!r}, not a tensor")
    if tuple(actual.shape) != tuple(expected.shape):
        raise Wrong(case, f"has shape {tuple(actual.shape)}, expected {tuple(expected.shape)}")
    got = actual.detach().cpu().double()
    bound = torch.as_tensor(bound, dtype=torch.float64).expand(expected.shape)
    error = (got - expected).abs()
    if bool((error <= bound).all()):
        return
    finite = torch.isfinite(got)
    excess = torch.where(torch.isnan(error), torch.inf, error - bound)
    where = tuple(int(i) for i in torch.unravel_index(excess.argmax(), excess.shape)) if excess.ndim else ()
    wrong = int((~(error <= bound)).sum())
    lines = [
        f"{wrong:,} of {error.numel():,} elements are off; the worst is at {list(where)}:",
        f"  got {got[where]:.7g}, expected {expected[where]:.7g}",
    ]
    if bool(finite.all()):
        lines.append(f"  error {error[where]:.2g}, allowed {bound[where]:.2g} ({why})")
    causes = [
        text
        for text, value in (suspects or {}).items()
        if _same(got, value, bound) and not _within(value, expected, bound)
    ]
    if causes:
        lines.append("Likely cause: " + causes[0])
    elif not bool(finite.all()):
        lines.append(f"Likely cause: {_non_finite(got, expected)}")
    else:
        lines.append(_pattern(error > bound))
    raise Wrong(case, "\n".join(line for line in lines if line))


def _same(got, value, bound) -> bool:
    value = torch.as_tensor(value, dtype=torch.float64)
    if value.shape != got.shape:
        return False
    near = (got - value).abs() <= 4 * bound + 1e-3 * value.abs().clamp(min=1e-3)
    # What is not finite is like nothing but itself: a tolerance relative to it would let everything pass.
    near = torch.where(value.isfinite(), near, (got == value) | (got.isnan() & value.isnan()))
    return bool(near.all())


def _within(value, expected, bound) -> bool:
    """Whether a suspect is right here: a lost tail is nothing where there is no tail."""
    value = torch.as_tensor(value, dtype=torch.float64)
    return bool(((value - expected).abs() <= bound).all())


def _non_finite(got, expected) -> str:
    bad = ~torch.isfinite(got)
    return (
        f"{int(bad.sum()):,} elements are not finite{_region(bad)}. An output element that is never written "
        "holds NaN here, and so does everything around the inputs: look for a tile without a store, or a "
        "load without its mask."
    )


def _pattern(bad) -> str:
    return f"The elements that are off{_region(bad)}." if _region(bad) else ""


def _region(bad) -> str:
    """Where the bad elements of a matrix lie, when they fill a block of rows or columns."""
    if bad.ndim != 2 or bool(bad.all()):
        return ""
    rows, columns = bad.any(1).nonzero().flatten(), bad.any(0).nonzero().flatten()
    first, last = (int(rows[0]), int(columns[0])), (int(rows[-1]) + 1, int(columns[-1]) + 1)
    if first == (0, 0) and last == tuple(bad.shape):  # everywhere: that says nothing
        return ""
    return (
        f" lie in rows {first[0]} to {last[0] - 1} and columns {first[1]} to {last[1] - 1} of "
        f"{bad.shape[0]}×{bad.shape[1]}"
    )
