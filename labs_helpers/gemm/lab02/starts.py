"""Record the order in which an NVIDIA GPU starts the programs of a matrix product."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer, smid


@triton.jit
def clock():
    """Return the cycle counter of this SM."""
    return tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)


@triton.jit
def watched_matmul_kernel(a_ptr, b_ptr, d_ptr, log_ptr, counter_ptr, n, BLOCK: tl.constexpr):
    """Program (i, j) computes tile (i, j) of D = A·B, n×n, and writes five numbers to the log.

    These are its place in the order of starts, the time in ns at its start and at its end, its SM, and its duration in
    cycles of that SM.
    """
    started, cycles = globaltimer(), clock()
    place = tl.atomic_add(counter_ptr, 1)
    i, j = tl.program_id(0), tl.program_id(1)
    rows, columns = i * BLOCK + tl.arange(0, BLOCK), j * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, n, 32):
        k = start + tl.arange(0, 32)
        a = tl.load(a_ptr + rows[:, None] * n + k[None, :])
        b = tl.load(b_ptr + k[:, None] * n + columns[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(d_ptr + rows[:, None] * n + columns[None, :], acc.to(d_ptr.dtype.element_ty))
    log = log_ptr + 5 * (i * tl.num_programs(1) + j)
    tl.store(log, place.to(tl.int64))
    tl.store(log + 1, started)
    tl.store(log + 2, globaltimer())
    tl.store(log + 3, smid().to(tl.int64))
    tl.store(log + 4, clock() - cycles)


def watch_starts(n: int, block: int = 64, first: int = 132) -> dict[str, Any]:
    """Return a record of one warm run of an n×n product with block×block tiles in float16.

    It counts the tile rows and columns of the `first` programs to start. It also holds the correlation of the order of
    starts with the program ids, counted with the first axis of the grid fastest and with the second axis fastest.
    """
    tiles = n // block
    a, b, d = (torch.randn(n, n, device="cuda", dtype=torch.float16) for _ in range(3))
    log = torch.zeros(tiles * tiles, 5, dtype=torch.int64, device="cuda")
    for _ in range(3):
        counter = torch.zeros(1, dtype=torch.int32, device="cuda")
        watched_matmul_kernel[(tiles, tiles)](a, b, d, log, counter, n, BLOCK=block)
    place, start, end, sm, cycles = log.cpu().unbind(1)
    ids = place.argsort()
    rows, columns = ids // tiles, ids % tiles
    places = torch.arange(tiles * tiles)

    def correlation(number) -> float:
        return float(torch.corrcoef(torch.stack([number, places]).double())[0, 1])

    return {
        "study": "gemm-order",
        "kind": "start",
        "M": n,
        "tiles": tiles,
        "first": first,
        "first_rows": len(set(rows[:first].tolist())),
        "first_columns": len(set(columns[:first].tolist())),
        "correlation_first_axis": correlation(rows + tiles * columns),
        "correlation_second_axis": correlation(rows * tiles + columns),
        "running_together": int((start < end.min()).sum()),
        "sms": int(sm.unique().numel()),
        "us": float(end.max() - start.min()) / 1e3,
        "program_us": float((end - start).double().median()) / 1e3,
        "sm_mhz": 1e3 * float((cycles.double() / (end - start).clamp(min=1)).median()),
    }
