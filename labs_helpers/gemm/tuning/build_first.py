"""Compile the kernels of a sweep on all cores before any is timed: Triton keeps on disk what it compiled, and the
process that measures finds it there."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import torch
from tqdm.auto import tqdm

from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.tuning.operands import operands
from labs_helpers.measure.machine import this_machine


def build_first(cases, configs, kernel, dtype=torch.float16, processes: int | None = None) -> int:
    """Launch each configuration once for each kind of `cases`, in processes of their own; how many could be launched.

    cases: ((M, N, K), layout) pairs. kernel: called as kernel(a, b, c, config=…), from a module that a process can
    import. processes: by default one a core. A configuration that cannot run, or ends its process, is left for the
    sweep to find out.
    """
    kinds = {(tuple(map(_small, shape)), layout) for shape, layout in cases}
    # The largest tiles take the compiler longest, so they come first.
    largest = sorted(configs, key=lambda config: -config.BLOCK_M * config.BLOCK_N)
    jobs = [(kernel, shape, layout, dtype, config) for shape, layout in sorted(kinds) for config in largest]
    context = multiprocessing.get_context("spawn")  # a process that forks after it used the GPU cannot use it again
    built = 0
    with ProcessPoolExecutor(processes or this_machine().cores, mp_context=context) as pool:
        try:
            for done in tqdm(pool.map(_build, jobs), total=len(jobs), desc="kernels compiled", mininterval=2):
                built += done
        except BrokenProcessPool:
            print("a process ended while it compiled; what is missing is compiled when it is measured")
    return built


def _small(size: int) -> int:
    """A small size for which Triton compiles the same kernel: it looks at the divisibility by 16, and BLOCK_K
    divides 64."""
    return 512 + size % 64


def _build(job) -> bool:
    kernel, shape, layout, dtype, config = job
    try:
        kernel(*operands(*shape, dtype, layout), config=Config(**config.keywords()))
    except Exception:  # too much shared memory, for one: the sweep records why
        return False
    return True
