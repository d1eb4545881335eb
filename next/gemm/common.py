"""What the scripts share: records as JSON lines as they come, time limits, operands, a right result before any time."""

import json
import os
import time
from pathlib import Path

import torch

OUT = Path(os.environ.get("OUT", "/tmp/gpu16-out"))
OUT.mkdir(parents=True, exist_ok=True)
BEGAN = time.monotonic()


class Records:
    """Appends to $OUT/NAME.jsonl at once; `done` holds the keys of what is there (for a script that is run again)."""

    def __init__(self, name):
        self.path = OUT / f"{name}.jsonl"
        self.rows = [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def add(self, **row):
        self.rows.append(row)
        with open(self.path, "a") as file:
            file.write(json.dumps(row) + "\n")

    def has(self, **key):
        return any(all(row.get(k) == v for k, v in key.items()) for row in self.rows)


def left(seconds):
    return seconds - (time.monotonic() - BEGAN)


def operands(M, N, K, dtype=torch.float16):
    generator = torch.Generator("cuda").manual_seed(M + N + K)
    return [
        torch.randn(*size, dtype=dtype, device="cuda", generator=generator) for size in ((M, K), (K, N), (M, N))
    ]


def reference(a, b, c):
    """ReLU(A·B + C) in float64, and the bound on each element's error."""
    from labs_helpers.gemm.tuning.operands import rounding_bound

    exact = torch.relu(a.double() @ b.double() + c.double())
    return exact, rounding_bound(a, b, c, exact)


def wrong(got, exact, bound):
    """How many elements are beyond the bound (NaN counts)."""
    return int((~((got.double() - exact).abs() <= bound)).sum())


def graph_ms(function, ms=2.0):
    """The median time of one call out of a CUDA graph, in ms."""
    from triton.testing import do_bench_cudagraph

    return do_bench_cudagraph(function, rep=ms, return_mode="median")


def eager(a, b, c):
    return torch.matmul(a, b).add(c).relu_()


BASELINES = {
    "eager": eager,
    "addmm + relu": lambda a, b, c: torch.addmm(c, a, b).relu_(),
    "_addmm_activation": lambda a, b, c: torch._addmm_activation(c, a, b),
}


def finish():
    print(f"{time.monotonic() - BEGAN:.0f} s in all", flush=True)
