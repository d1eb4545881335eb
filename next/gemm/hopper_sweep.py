"""Times of the Hopper kernel: every configuration of hopper_grid() × 40 random shapes, from CUDA graphs; then the model
fitted to them, each shape left out in turn, and the model's file. Usage: hopper_sweep.py [float16|bfloat16] [seconds]"""

import subprocess
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import OUT, finish, graph_ms, left, operands, reference, wrong  # noqa: E402

import torch  # noqa: E402

from labs_helpers.gemm.fused_matmul import fused_matmul  # noqa: E402
from labs_helpers.gemm.kernels.hopper import hopper_matmul  # noqa: E402
from labs_helpers.gemm.random_shapes import random_shapes  # noqa: E402
from labs_helpers.gemm.tuning.hopper_space import hopper_grid  # noqa: E402
from labs_helpers.measure import results  # noqa: E402
from labs_helpers.measure.machine import this_machine  # noqa: E402
from labs_helpers.measure.provenance import provenance  # noqa: E402

name = sys.argv[1] if len(sys.argv) > 1 else "float16"
limit = float(sys.argv[2]) if len(sys.argv) > 2 else 330
dtype = getattr(torch, name)
slug = this_machine().label.lower().replace(" ", "-")
path = OUT / f"gemm-hopper-tuning.{slug}.jsonl"
# Not the seed of the study, whose shapes stay unseen. Aligned ones and those of few rows.
shapes = [s[1:] for s in random_shapes(70, 11) if s.kind != "unaligned" and s.K > 128][:40]
on, sms = provenance(), torch.cuda.get_device_properties(0).multi_processor_count
done = set()
if path.exists():
    frame = results.load(path)
    done = set(zip(frame["M"], frame["N"], frame["K"], frame["dtype"]))
grid = hopper_grid()
for config in grid:  # compiled once each, for all shapes (N and K are divisible by 8; 16 or not makes a second)
    for shape in ((512, 512, 512), (520, 520, 520)):
        hopper_matmul(*operands(*shape, dtype), config)
torch.cuda.synchronize()
print(f"{len(grid)} configurations compiled, {left(limit):.0f} s left", flush=True)
for M, N, K in shapes:
    if (M, N, K, name) in done:
        continue
    if left(limit) < 5:
        print("time is over: the same command goes on here")
        break
    a, b, c = operands(M, N, K, dtype)
    exact, bound = reference(a, b, c)
    rows = []
    for config in grid:
        row = {"study": "gemm-hopper-tuning", "kind": "hopper", "M": M, "N": N, "K": K, "dtype": name, "graph": True}
        row |= config.keywords() | {"multiprocessors": sms, "on": on}
        try:
            call = partial(hopper_matmul, a, b, c, config)
            stray = wrong(call(), exact, bound)
            rows.append(row | ({"error": f"wrong: {stray} elements"} if stray else {"median_ms": graph_ms(call)}))
        except Exception as error:
            rows.append(row | {"error": f"{type(error).__name__}: {error}"[:200]})
    best = min((r for r in rows if "median_ms" in r), key=lambda r: r["median_ms"])
    now = graph_ms(partial(fused_matmul, a, b, c))  # what the plan takes as it is
    results.append(path, rows)
    results.append(path, {k: best[k] for k in ("study", "M", "N", "K", "dtype", "on")} | {"kind": "plan", "plan_ms": now, "median_ms": None})
    print(f"{M}×{N}×{K}: best {best['median_ms']:.4f} ms {[best[k] for k in ('BLOCK_M', 'BLOCK_N', 'BLOCK_K', 'STAGES', 'CONSUMERS')]}, "
          f"the plan's {now / best['median_ms'] - 1:+.1%}, errors {sum('error' in r for r in rows)}", flush=True)
model = OUT / f"model-hopper-{name}.{slug}.json"
subprocess.run([sys.executable, "-m", "labs_helpers.gemm.tuning.model_study", str(path), "--dtype", name, "--write", str(model)], timeout=100, check=False)
finish()
