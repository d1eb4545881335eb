"""Measure the cost of one more program: the time of a grid against its number of programs. Needs a GPU.

There are two kinds of programs, and 16 of either fit on an SM. Some compute all the time and share the SM's lanes;
others wait for memory all the time and leave the lanes free.
"""

from __future__ import annotations

from functools import partial

import torch
import triton
import triton.language as tl

from labs_helpers.first_kernels.lab00.latency import LINE, chase_kernel, ring
from labs_helpers.measure.timing import measure

MOST = 36  # programs per SM in the largest grid
COMPUTE_STEPS, WAIT_STEPS = 2**13, 2**8


@triton.jit
def compute_kernel(out_ptr, steps, BLOCK: tl.constexpr):
    """Compute a chain of multiply-adds on BLOCK numbers that stay in registers until the end."""
    x = tl.arange(0, BLOCK).to(tl.float32)
    for _ in range(steps):
        x = x * 0.999 + 0.5
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), x)


def measure_waves(multiprocessors: int) -> list[dict]:
    """Return one record per kind of program and grid size; grids grow in steps of half the number of SMs."""
    most = MOST * multiprocessors
    numbers = torch.empty(512 * most, device="cuda")
    following, places = ring(4 * 2**20, "cuda"), torch.empty(most, dtype=torch.int32, device="cuda")
    lines = following.numel() * 4 // LINE
    spacing = (lines // most) * LINE // 4
    kinds = {
        "computing": lambda P: compute_kernel[(P,)](numbers, COMPUTE_STEPS, BLOCK=512),
        "waiting": lambda P: chase_kernel[(P,)](following, places, WAIT_STEPS, spacing),
    }
    records = []
    for kind, launch in kinds.items():
        for programs in range(multiprocessors // 2, most + 1, multiprocessors // 2):
            # Replayed from a graph, so L2 is warm for every wave, not only for the second.
            timing = measure(partial(launch, programs), warmup_ms=2, repeat_ms=20, graph=True)
            records.append(
                {
                    "kind": "waves",
                    "name": f"{programs} programs, {kind}",
                    "programs": programs,
                    "does": kind,
                    "l2": "warm",
                    "multiprocessors": multiprocessors,
                    **timing.record(),
                }
            )
    return records
