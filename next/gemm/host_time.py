"""Host time of a call: plan, check and launch separately, and eager beside them; and that the prepared launch is right.

1,000 calls of a small product (the device is faster than the host there, so no queue fills), without a synchronisation
in between; the median of 9 turns, µs.
"""

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import Records, eager, finish, operands, reference, wrong  # noqa: E402

import torch  # noqa: E402
import triton  # noqa: E402

from labs_helpers.compile.operators import autocast, seen_by_torch  # noqa: E402
from labs_helpers.gemm.fused_matmul import fused_matmul  # noqa: E402
from labs_helpers.gemm.kernels import hopper  # noqa: E402
from labs_helpers.gemm.plan import plan  # noqa: E402

records = Records("gemm-host-time")


def micros(function, calls=1000, turns=9):
    for _ in range(50):
        function()
    found = []
    for _ in range(turns):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(calls):
            function()
        found.append((time.perf_counter() - began) / calls * 1e6)
    torch.cuda.synchronize()
    return statistics.median(found)


M, N, K = 256, 256, 512
a, b, c = operands(M, N, K)
exact, bound = reference(a, b, c)
for turn in range(3):  # the usual launch first, then the prepared one twice
    assert wrong(fused_matmul(a, b, c), exact, bound) == 0, turn
chosen = plan(a, b, c)
print(chosen)
launch = hopper._launch_for(M, N, K, a.dtype, a.device, chosen.config)
ready = launch.prepared
print("prepared:", ready is not None, "Triton", triton.__version__)
d = torch.empty(M, N, dtype=a.dtype, device="cuda")

# Many operands: every call must read its own.
sets = [operands(M, N, K) for _ in range(40)]
for x in sets:
    x[0].normal_()
got = [fused_matmul(*x) for x in sets]
assert all(wrong(y, *reference(*x)) == 0 for x, y in zip(sets, got)), "a descriptor of other operands"
# Other streams, threads, and a CUDA graph that is replayed after its inputs changed.
stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    other = fused_matmul(a, b, c)
torch.cuda.synchronize()
assert wrong(other, exact, bound) == 0
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    replayed = fused_matmul(a, b, c)
a.normal_()
graph.replay()
torch.cuda.synchronize()
assert wrong(replayed, *reference(a, b, c)) == 0, "graph"

parts = {
    "fused_matmul, a call": lambda: fused_matmul(a, b, c),
    "autocast and dispatch checks": lambda: (autocast(a, b, c), seen_by_torch(a, b, c)),
    "plan": lambda: plan(a, b, c),
    "launch with torch.empty (hopper_matmul)": lambda: hopper.hopper_matmul(a, b, c, chosen.config),
    "torch.empty": lambda: torch.empty((M, N), dtype=a.dtype, device=a.device),
    "launch alone, prepared": lambda: launch(a, b, c, d),
    "launch alone, usual": lambda: launch._usual(a, b, c, d),
    "fits()": lambda: ready.fits(),
    "four tensor maps from the cache": lambda: (ready.matrix(0, a), ready.matrix(1, b), ready.matrix(2, c), ready.matrix(3, d)),
    "eager": lambda: eager(a, b, c),
    "_addmm_activation": lambda: torch._addmm_activation(c, a, b),
} if ready is not None else {"fused_matmul, a call": lambda: fused_matmul(a, b, c), "eager": lambda: eager(a, b, c)}
for name, function in parts.items():
    us = micros(function)
    records.add(what=name, us=us, prepared=ready is not None, triton=triton.__version__)
    print(f"{us:8.1f} µs  {name}", flush=True)
finish()
