"""Split-K for few rows: its configurations × SPLITS, from CUDA graphs, beside what the plan takes and PyTorch's ways."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import BASELINES, Records, finish, graph_ms, left, operands, reference, wrong  # noqa: E402

import torch  # noqa: E402

from labs_helpers.gemm.fused_matmul import fused_matmul  # noqa: E402
from labs_helpers.gemm.kernels import split_k  # noqa: E402
from labs_helpers.gemm.kernels.split_k import split_k_matmul, worth_timing  # noqa: E402

# Hundreds of graphs are captured here, one after the other: counters for all of them, so that none writes zeros anew.
split_k.RESERVE = 2**26
limit = float(sys.argv[1]) if len(sys.argv) > 1 else 200
records = Records("gemm-decode")
SHAPES = [(M, N, K) for N, K in ((4096, 4096), (14336, 4096), (4096, 14336), (2048, 16384)) for M in (1, 16, 64, 128)]
sms = torch.cuda.get_device_properties(0).multi_processor_count
table = []
for M, N, K in SHAPES:
    if records.has(M=M, N=N, K=K, name="end"):
        continue
    if left(limit) < 8:
        print("time is over: the same command goes on here")
        break
    a, b, c = operands(M, N, K)
    exact, bound = reference(a, b, c)
    times = {}
    for name, way in (BASELINES | {"the plan": fused_matmul}).items():
        times[name] = graph_ms(partial(way, a, b, c), 1)
        records.add(M=M, N=N, K=K, name=name, ms=times[name])
    best = (float("inf"), None)
    for config in worth_timing(M):
        tiles = -(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)
        steps = -(-K // config.BLOCK_K)
        # Programs for one, two and four on every SM, and no split at all.
        for splits in sorted({1, *(min(max(round(fill * sms / tiles), 1), steps) for fill in (1, 2, 4))}):
            chosen = replace(config, SPLITS=splits)
            call = partial(split_k_matmul, a, b, c, chosen)
            try:
                stray = max(wrong(call(), exact, bound) for _ in range(3))
                if stray or not torch.equal(call(), call()):
                    records.add(M=M, N=N, K=K, config=chosen.keywords() | {"SPLITS": splits}, error=f"wrong: {stray}, or not the same twice")
                    print("WRONG", M, N, K, chosen, stray, flush=True)
                    continue
                ms = graph_ms(call, 1)
            except Exception as error:
                records.add(M=M, N=N, K=K, config=str(chosen), error=f"{type(error).__name__}: {error}"[:200])
                continue
            records.add(M=M, N=N, K=K, name="split_k", config=chosen.keywords() | {"SPLITS": splits}, ms=ms)
            best = min(best, (ms, chosen), key=lambda pair: pair[0])
    records.add(M=M, N=N, K=K, name="end")
    baseline = min(BASELINES, key=times.get)
    rate = 2 * (K * N + M * K + 2 * M * N) / best[0] / 1e9
    table.append(f"{M}×{N}×{K}: split-K {best[0]:.4f} ms ({rate:.2f} TB/s), {times[baseline] / best[0]:.2f} × {baseline}; the plan's {times[baseline] / times['the plan']:.2f} ×; {best[1]}")
    print(table[-1], flush=True)
finish()
