"""How long one load takes, from L1, from L2 and from DRAM: a chain of loads, each of which needs the one before.

On a GPU alone: in the interpreter there is nothing to time.
"""

from __future__ import annotations

from functools import partial

import torch
import triton
import triton.language as tl

from labs_helpers.measure.timing import measure

LINE = 128  # bytes between two places: far enough apart that no load brings the next one along
# Where a chase through so many bytes finds its data, and how many steps of it are timed. A lap of L2's has 32,768.
CHASES = {"L1": (16 * 2**10, 2**13), "L2": (4 * 2**20, 2**15), "DRAM": (256 * 2**20, 2**13)}


@triton.jit
def chase_kernel(next_ptr, out_ptr, steps, spacing):
    """Program i starts at place i · spacing and goes `steps` times to the place that is written there."""
    place = tl.program_id(0) * spacing
    for _ in range(steps):
        place = tl.load(next_ptr + place)
    tl.store(out_ptr + tl.program_id(0), place)


def ring(nbytes: int, device: str, line: int = LINE) -> torch.Tensor:
    """int32 of `nbytes` bytes: each line's first element names that of the next; all lines once, in no order."""
    step, lines = line // 4, nbytes // line
    order = torch.randperm(lines, generator=torch.Generator().manual_seed(0)) * step
    following = torch.zeros(nbytes // 4, dtype=torch.int32)
    following[order] = order.roll(-1).int()
    return following.to(device)


def measure_latencies() -> list[dict]:
    """A record for each place that a load can come from: nanoseconds a load, by one warp that has nothing else to do.

    Two chases are timed, and their difference is divided by that of their steps: the launch and the first lap, which
    fills the cache, are in both.
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
