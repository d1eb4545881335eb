"""What proves exercises 1 and 6 of lab 02 right: counts of bytes, and the order of the tiles."""

from __future__ import annotations

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.meter import metered
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.tile_cache import tile_misses
from labs_helpers.measure.machine import this_machine


@exercise("02/1", "traffic", points=5, minutes=10, reference=exercises.traffic)
def traffic(student):
    M, N, K, itemsize = 96, 64, 32, 4
    answer = student(M, N, K, itemsize)
    if not (isinstance(answer, tuple) and len(answer) == 3):
        raise Wrong("", f"returned {answer!r}; three numbers are asked for: (flops, unfused_bytes, fused_bytes)")
    flops, unfused, fused = answer
    _number(
        "flops",
        flops,
        2 * M * N * K + 2 * M * N,
        {
            "a multiply-add is two FLOPs": M * N * K + 2 * M * N,
            "the sum with C and the maximum are M·N FLOPs each": 2 * M * N * K,
        },
    )
    yield f"{flops:,} FLOPs at M, N, K = {M}, {N}, {K}"
    a, b, c = torch.randn(M, K), torch.randn(K, N), torch.randn(M, N)
    with TorchTraffic() as counted:
        (a @ b + c).relu()
    _number(
        "unfused_bytes",
        unfused,
        counted.bytes,
        {
            "bytes are elements times itemsize": counted.bytes // itemsize,
            "the product A·B is written by one kernel and read by the next, and so is the sum": (
                M * K + K * N + 2 * M * N
            )
            * itemsize,
            "the ReLU is a kernel of its own: it reads the sum and writes the result": counted.bytes
            - 2 * M * N * itemsize,
            "the ReLU reads as well as writes": counted.bytes - M * N * itemsize,
        },
    )
    yield f"unfused: {unfused:,} bytes, as counted in PyTorch: " + ", ".join(
        f"{o.name} {o.bytes:,}" for o in counted.operations
    )
    _number(
        "fused_bytes",
        fused,
        _fused_bytes(a, b, c),
        {
            "bytes are elements times itemsize": _fused_bytes(a, b, c) // itemsize,
            "C is still read": (M * K + K * N + M * N) * itemsize,
            "fused, the product and the sum never leave the registers": counted.bytes,
        },
    )
    yield f"fused: {fused:,} bytes, " + ("as the meter counts" if this_machine().interpreted else "each tensor once")
    for shape in ((1, 1, 1), (4096, 4096, 4096), (128, 11008, 4096)):
        if tuple(student(*shape, 2)) != exercises.traffic(*shape, 2):
            raise Wrong(
                f"M, N, K = {shape}, itemsize 2",
                f"returned {student(*shape, 2)}, expected "
                f"{exercises.traffic(*shape, 2)}.\nLikely cause: two of M, N and K are swapped.",
            )
    yield "other shapes and item sizes"


@exercise("02/6", "order", points=10, minutes=15, reference=exercises.tile_order, kernel=True)
def tile_order(student):
    for tiles_m, tiles_n, GROUP_M in ((8, 8, 4), (7, 5, 3), (3, 9, 8), (5, 1, 2), (1, 6, 4)):
        case = f"{tiles_m}×{tiles_n} tiles in groups of {GROUP_M}"
        device = this_machine().device
        order = [tuple(tile) for tile in student(tiles_m, tiles_n, GROUP_M, device=device).tolist()]
        outside = [
            (pid, tile) for pid, tile in enumerate(order) if not (0 <= tile[0] < tiles_m and 0 <= tile[1] < tiles_n)
        ]
        if outside:
            raise Wrong(
                case,
                f"program {outside[0][0]} gets tile {outside[0][1]}, which does not exist.\n"
                "Likely cause: the last group has fewer rows than GROUP_M.",
            )
        if twice := [tile for tile in set(order) if order.count(tile) > 1]:
            raise Wrong(
                case,
                f"tile {min(twice)} is taken by {order.count(min(twice))} programs, and others by none: "
                "not a bijection.\nLikely cause: the place within a group counts from the group's first "
                "program and is divided by the rows that this group has.",
            )
        expected = [
            (row, column)
            for top in range(0, tiles_m, GROUP_M)
            for column in range(tiles_n)
            for row in range(top, min(top + GROUP_M, tiles_m))
        ]
        if order != expected:
            raise Wrong(case, _wrong_order(order, expected, tiles_m, tiles_n, GROUP_M))
        yield f"{case}: every tile once"
    rows = [(i, j) for i in range(16) for j in range(16)]
    grouped = student(16, 16, 4, device=this_machine().device).tolist()
    before, after = tile_misses(rows, 12, wave=16), tile_misses(grouped, 12, wave=16)
    if after >= before:
        raise Wrong("16×16 tiles", f"{after} misses of the simulated cache, row by row it is {before}")
    yield f"16×16 tiles, 16 at a time, a cache of 12 strips: {after} misses, row by row {before}"


def _number(name: str, got, expected: int, suspects: dict) -> None:
    if got == expected:
        return
    causes = [text for text, value in suspects.items() if got == value]
    cause = f"\nLikely cause: {causes[0]}." if causes else ""
    raise Wrong("", f"{name} is {got!r}, counted were {expected:,}{cause}")


def _fused_bytes(a, b, c) -> int:
    """Bytes of the fused kernel with one tile for the whole of D, counted; on a GPU from the tensors' sizes."""
    if not this_machine().interpreted:
        return sum(t.numel() * t.element_size() for t in (a, b, c, c))
    with metered() as meter:
        exercises.matmul_add_relu(a, b, c, BLOCK_M=128, BLOCK_N=64, BLOCK_K=32)
    return meter.bytes_moved


def _wrong_order(order, expected, tiles_m: int, tiles_n: int, GROUP_M: int) -> str:
    pid = next(i for i, (got, want) in enumerate(zip(order, expected, strict=True)) if got != want)
    text = f"program {pid} gets tile {order[pid]}, expected {expected[pid]}"
    by_rows = [(i, j) for i in range(tiles_m) for j in range(tiles_n)]
    if order == by_rows:
        return f"{text}.\nLikely cause: this is plain row order; the groups are not used."
    if order == [(j, i) for i, j in expected]:
        return f"{text}.\nLikely cause: row and column are swapped."
    return f"{text}.\nLikely cause: within a group of {GROUP_M} rows the programs walk down the rows first."
