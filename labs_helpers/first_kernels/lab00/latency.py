"""Measure the latency of a load from L1, L2 and DRAM by a chain of loads, each of which depends on the one before.

Needs a GPU: times in the interpreter mean nothing.
"""

from __future__ import annotations

from functools import partial

import torch
import triton
import triton.language as tl

from labs_helpers.measure.timing import measure

LINE = 128  # bytes between two places, so that no load fetches the next place too
# memory level → (bytes that a chase visits, steps that are timed). One lap in L2 takes 32,768 steps.
CHASES = {"L1": (16 * 2**10, 2**13), "L2": (4 * 2**20, 2**15), "DRAM": (256 * 2**20, 2**13)}


@triton.jit
def chase_kernel(next_ptr, out_ptr, steps, spacing):
    """Program i starts at place i · spacing and moves `steps` times to the place stored where it is."""
    place = tl.program_id(0) * spacing
    for _ in range(steps):
        place = tl.load(next_ptr + place)
    tl.store(out_ptr + tl.program_id(0), place)


def ring(nbytes: int, device: str, line: int = LINE) -> torch.Tensor:
    """Return `nbytes` of int32. Each line's first element points to another line; a lap visits all lines, shuffled."""
    step, lines = line // 4, nbytes // line
    order = torch.randperm(lines, generator=torch.Generator().manual_seed(0)) * step
    following = torch.zeros(nbytes // 4, dtype=torch.int32)
    following[order] = order.roll(-1).int()
    return following.to(device)


def measure_latencies() -> list[dict]:
    """Return one record per memory level: nanoseconds per load, for one warp with no other work.

    Two chases of different length are timed, and the difference of their times is divided by that of their steps.
    This cancels the launch and the first lap, which fills the cache.
    """
    records = []
    for name, (nbytes, steps) in CHASES.items():
        following, out = ring(nbytes, "cuda"), torch.empty(1, dtype=torch.int32, device="cuda")
        short, long = (
            measure(partial(chase_kernel[(1,)], following, out, n, 0, num_warps=1), warmup_ms=5, repeat_ms=150)
            for n in (steps, 2 * steps)
        )
        records.append(
            {
                "kind": "latency",
                "name": name,
                "bytes": nbytes,
                "steps": steps,
                "latency_ns": 1e6 * (long.median_ms - short.median_ms) / steps,
                **long.record(),
            }
        )
    return records
