"""Time a transposed copy with tiles of several shapes, and a plain copy. Needs a GPU."""

from __future__ import annotations

import torch

from labs_helpers.first_kernels.lab00.exercises.ex2_transpose_copy import transpose_copy_kernel
from labs_helpers.measure.timing import measure

N = 8192
TILES = ((32, 32), (64, 64), (1024, 1), (1, 1024), (32, 1), (1, 32))  # BLOCK_M × BLOCK_N


def measure_transposes() -> list[dict]:
    """Return one record per tile shape and one for a plain copy, of an N×N float32 matrix into a preallocated one."""
    x, y = torch.ones(N, N, device="cuda"), torch.empty(N, N, device="cuda")

    def transpose(BLOCK_M, BLOCK_N):
        grid = (N // BLOCK_M, N // BLOCK_N)
        transpose_copy_kernel[grid](x, y, N, N, *x.stride(), *y.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)

    runs = {f"tiles of {m}×{n}": lambda m=m, n=n: transpose(m, n) for m, n in TILES}
    records = []
    for name, run in {"plain copy": lambda: y.copy_(x), **runs}.items():
        timing = measure(run)
        records.append(
            {
                "kind": "transpose",
                "name": name,
                "n": N,
                "bytes": 2 * 4 * N * N,
                **timing.record(),
            }
        )
    return records
