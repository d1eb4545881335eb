"""Count the load instructions that the compiler generates for different values of K, without a GPU."""

from __future__ import annotations

import re
from collections import Counter

import torch

from labs_helpers.compile.ahead_of_time import compile_all, job
from labs_helpers.compile.launches import record_launches
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.fused import fused_matmul
from labs_helpers.measure.machine import this_machine


def load_table(sizes_of_k, config: Config, target: str = "sm_90"):
    """Return a DataFrame with one row per K: load instructions by kind, and the kernel's shared memory in bytes.

    The two kinds load 16 bytes asynchronously (cp.async), or one float16 and wait for it. A, B and C are float16, and M
    and N are multiples of 16.
    """
    import pandas

    jobs = []
    for K in sizes_of_k:
        device = this_machine().device
        operands = (torch.zeros(*size, dtype=torch.float16, device=device) for size in ((128, K), (K, 256), (128, 256)))
        with record_launches(run=False) as launches:
            fused_matmul(*operands, config=config)
        jobs.append(job(launches[-1], target))
    rows = []
    for K, compiled in zip(sizes_of_k, compile_all(jobs), strict=True):
        found = Counter(re.findall(r"cp\.async\.c[ag]\.shared\.global|ld\.global\.b16", compiled.assembly))
        asynchronous = sum(count for name, count in found.items() if name.startswith("cp.async"))
        rows.append((K, asynchronous, found["ld.global.b16"], compiled.shared))
    return pandas.DataFrame(rows, columns=["K", "16 bytes, asynchronous", "one float16, waited for", "shared"])
