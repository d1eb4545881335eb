"""Random shapes, strides and dtypes on the GPU through every new way of a product, against float64 and between canaries.

right.py [cases] [seconds]. With few cases also under compute-sanitizer:
    compute-sanitizer --tool memcheck python right.py 6 200
"""

import random
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import Records, finish, left, reference, wrong  # noqa: E402

import torch  # noqa: E402

from labs_helpers.gemm.fused_matmul import fused_matmul  # noqa: E402
from labs_helpers.gemm.kernels.hopper import hopper_matmul, why_not  # noqa: E402
from labs_helpers.gemm.kernels.padded import copy_rows, padded, padded_matmul  # noqa: E402
from labs_helpers.gemm.kernels.split_k import split_k_matmul, worth_timing  # noqa: E402
from labs_helpers.gemm.tuning.hopper_space import hopper_grid  # noqa: E402

cases = int(sys.argv[1]) if len(sys.argv) > 1 else 120
limit = float(sys.argv[2]) if len(sys.argv) > 2 else 90
draw, records, grid = random.Random(5), Records("gemm-right"), hopper_grid()


def matrix(rows, columns, dtype):
    """A matrix between NaN: contiguous, padded rows, transposed, or starting at an odd element."""
    kind = draw.choice(("rows", "padded", "transposed", "odd start"))
    big = torch.full((rows + 2, columns + 9), torch.nan, dtype=dtype, device="cuda")
    if kind == "transposed":
        big = torch.full((columns + 2, rows + 8), torch.nan, dtype=dtype, device="cuda").t()
    if kind == "rows":
        return torch.randn(rows, columns, dtype=dtype, device="cuda")
    first = 1 if kind == "odd start" else 0
    part = big[1 : 1 + rows, first : first + columns]
    return part.copy_(torch.randn(rows, columns, dtype=dtype, device="cuda"))


counts = {}
for case in range(cases):
    if left(limit) < 3:
        print(f"time is over after {case} cases")
        break
    dtype = draw.choice((torch.float16, torch.bfloat16))
    few = draw.random() < 0.4
    M = draw.randint(1, 130) if few else draw.randint(1, 1500)
    N, K = draw.randint(1, 1200), draw.randint(129, 1500)
    a, b, c = matrix(M, K, dtype), matrix(K, N, dtype), matrix(M, N, dtype)
    exact, bound = reference(a, b, c)
    ways = {"the plan": lambda: fused_matmul(a, b, c), "padded": lambda: padded_matmul(a, b, c, grid[case % len(grid)])}
    split = replace(draw.choice(worth_timing(M)), SPLITS=draw.choice((1, 2, 3, 5, 8)))
    ways["split_k"] = lambda: split_k_matmul(a, b, c, split)
    if why_not(a, b, c, "sm_90") is None:
        ways["hopper"] = lambda: hopper_matmul(a, b, c, grid[(case * 7) % len(grid)])
    for name, way in ways.items():
        stray = max(wrong(way(), exact, bound) for _ in range(3))  # usual, prepared, prepared
        counts[name] = counts.get(name, 0) + 1
        records.add(case=case, name=name, M=M, N=N, K=K, dtype=str(dtype), wrong=stray)
        if stray:
            print("WRONG", name, (M, N, K), dtype, a.stride(), b.stride(), c.stride(), split, grid[case % len(grid)], stray, flush=True)
    y = padded(M, N, dtype, "cuda")
    copy_rows((c, y))
    assert torch.equal(y, c), "copy_rows"
bad = sum(row["wrong"] > 0 for row in records.rows)
print(f"{counts}: {bad} wrong")
finish()
