"""The matrices on which the kernel is tuned: A, B and C of random numbers, the same in each run."""

from __future__ import annotations

import torch

from labs_helpers.measure.machine import this_machine

LAYOUTS = ("rows", "B transposed")


def operands(M: int, N: int, K: int, dtype: torch.dtype = torch.float16, layout: str = "rows") -> list[torch.Tensor]:
    """[A (M, K), B (K, N), C (M, N)] of normally distributed numbers on this machine's device.

    layout: 'rows' has all three contiguous; 'B transposed' has B as the view of a contiguous (N, K), so that its
    strides are (1, K). ValueError for another one.
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
