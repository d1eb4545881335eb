"""Measure how many bytes must be in flight to keep memory busy: read with varying numbers of warps and loads ahead.

Little's law: bytes in flight = bandwidth × latency. Needs a GPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from labs_helpers.measure.timing import measure

VECTOR = 16  # bytes that a thread asks for with one instruction
# (num_warps, programs on an SM): from 1 warp to 64, the most that an SM can hold.
CROWDS = ((1, 1), (1, 2), (4, 1), (4, 2), (4, 3), (4, 4), (4, 6), (4, 8), (4, 12), (4, 16))
STAGES = (1, 3, 5)
READ_BYTES = 2**30


@triton.jit
def read_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Program i of P adds up blocks i, i + P, … of the n elements of x; n is a multiple of BLOCK.

    With STAGES stages, the loads of STAGES − 1 blocks are in flight while it adds. With 1 stage, only one block's load
    is in flight, and the program waits for it.
    """
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK, num_stages=STAGES):
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.program_id(0), tl.sum(total))


def bytes_in_flight(warps: int, stages: int, warp_size: int = 32) -> int:
    """Return the most bytes that the warps of an SM can have in flight: one load per thread for each block ahead."""
    return warps * warp_size * VECTOR * max(1, stages - 1)


def measure_in_flight(multiprocessors: int) -> list[dict]:
    """Return one record per number of warps on an SM and number of stages: the time to read 1 GiB once."""
    x = torch.ones(READ_BYTES // 4, device="cuda")
    records = []
    for stages in STAGES:
        for num_warps, programs in CROWDS:
            BLOCK, grid = num_warps * 32 * VECTOR // 4, (programs * multiprocessors,)
            out = torch.empty(grid, device="cuda")

            def read(BLOCK=BLOCK, grid=grid, out=out, stages=stages, num_warps=num_warps):
                read_kernel[grid](x, out, x.numel(), BLOCK=BLOCK, STAGES=stages, num_warps=num_warps)

            timing, warps = measure(read, warmup_ms=5, repeat_ms=60), num_warps * programs
            records.append(
                {
                    "kind": "in flight",
                    "name": f"{warps} warps an SM, {stages} stages",
                    "warps": warps,
                    "stages": stages,
                    "bytes_in_flight": bytes_in_flight(warps, stages),
                    "bytes": READ_BYTES,
                    "multiprocessors": multiprocessors,
                    **timing.record(),
                }
            )
    return records


def fewest_warps(records: list[dict], share: float = 0.95) -> int:
    """Return the fewest warps per SM that reach `share` of the best bandwidth with one load in flight each."""
    best = min(r["median_ms"] for r in records)
    return min(r["warps"] for r in records if r["stages"] == 1 and r["median_ms"] <= best / share)
