"""Create the matrices for tuning, the same in each run, and bound the rounding errors of a result."""

from __future__ import annotations

import torch

from labs_helpers.measure.machine import this_machine

LAYOUTS = ("rows", "B transposed")
TOLERANCE = 1e-3  # ‖D − reference‖ / ‖reference‖ of float16 with float32 accumulation stays well below


def operands(M: int, N: int, K: int, dtype: torch.dtype = torch.float16, layout: str = "rows") -> list[torch.Tensor]:
    """Return [A (M, K), B (K, N), C (M, N)] of normally distributed numbers on this machine's device.

    layout: with 'rows' all three are contiguous; with 'B transposed' B is a view of a contiguous (N, K) with strides
    (1, K). Raises ValueError for another layout.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it may be one of {LAYOUTS}")
    device = this_machine().device
    generator = torch.Generator(device).manual_seed(M + N + K)
    a, b, c = (
        torch.randn(*size, dtype=dtype, device=device, generator=generator)
        for size in ((M, K), (N, K) if layout == "B transposed" else (K, N), (M, N))
    )
    return [a, b.t() if layout == "B transposed" else b, c]


def rounding_bound(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Return the largest error allowed in each element of f(A·B + C), float64 (M, N).

    It covers one rounding to A's dtype, and a float32 accumulation over K (Higham, Accuracy and Stability of Numerical
    Algorithms, §3.1). expected: the result in float64. f: ReLU or SiLU, whose slopes are at most 1.1.
    """
    spacing = torch.finfo(a.dtype)
    magnitude = a.double().abs() @ b.double().abs() + c.double().abs()
    accumulated = 1.1 * (a.shape[1] + 4) * 2.0**-24 * magnitude
    return spacing.eps / 2 * expected.abs() + accumulated + spacing.smallest_normal * spacing.eps
