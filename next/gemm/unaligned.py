"""Odd N or K: copies with the Hopper kernel, the portable kernel, and PyTorch's ways; and the rate of the copies."""

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import BASELINES, Records, finish, graph_ms, left, operands, reference, wrong  # noqa: E402

import torch  # noqa: E402

from labs_helpers.gemm.configs import default_config  # noqa: E402
from labs_helpers.gemm.kernels.padded import copies_pay, copy_rows, padded, padded_matmul  # noqa: E402
from labs_helpers.gemm.kernels.portable import portable_matmul  # noqa: E402
from labs_helpers.gemm.plan import _hopper_config  # noqa: E402

limit = float(sys.argv[1]) if len(sys.argv) > 1 else 120
records = Records("gemm-unaligned")
for n in (1023, 2047, 4095, 8191):
    x, y = torch.randn(n, n, device="cuda").half(), padded(n, n, torch.float16, "cuda")
    for name, copy in {"copy_rows in": lambda: copy_rows((x, y)), "copy_rows out": lambda: copy_rows((y, x)), "copy_": lambda: y.copy_(x)}.items():
        ms = graph_ms(copy)
        records.add(n=n, name=name, ms=ms, TBs=4 * n * n / ms / 1e9)
        print(f"{name} at {n}: {4 * n * n / ms / 1e9:.2f} TB/s", flush=True)
for M, N, K in [(n, n, n) for n in (511, 767, 1023, 1535, 2047, 3071, 4095, 8191)] + [
    (4096, 4096, 4095), (4096, 4095, 4096), (2048, 8192, 1001), (1000, 3001, 9000), (128, 8191, 8192), (8192, 1001, 2048)
]:
    if left(limit) < 5:
        print("time is over")
        break
    a, b, c = operands(M, N, K)
    exact, bound = reference(a, b, c)
    ways = dict(BASELINES)
    ways["portable"] = lambda a, b, c: portable_matmul(a, b, c, default_config(M, N, K, a.dtype, "sm_90"))
    ways["copied"] = lambda a, b, c: padded_matmul(a, b, c, _hopper_config(M, N, K, a.dtype)[0])
    times = {}
    for name, way in ways.items():
        if name in ("portable", "copied") and (stray := wrong(way(a, b, c), exact, bound)):
            print("WRONG", name, M, N, K, stray, flush=True)
            records.add(M=M, N=N, K=K, name=name, error=f"wrong: {stray}")
            continue
        times[name] = graph_ms(partial(way, a, b, c))
        records.add(M=M, N=N, K=K, name=name, ms=times[name], copies_pay=copies_pay(a, b, c))
    best = min(BASELINES, key=times.get)
    told = ", ".join(f"{name} {times['eager'] / ms:.2f}" for name, ms in times.items())
    print(f"{M}×{N}×{K}: × eager's speed: {told}; best baseline {best}; the plan copies: {copies_pay(a, b, c)}", flush=True)
finish()
