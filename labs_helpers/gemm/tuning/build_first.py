"""Compile the kernels of a sweep on all cores before any is timed.

Triton stores compiled kernels on disk, where the measuring process finds them."""

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
    """Launch each configuration once for each kind of `cases` in worker processes; return how many could be launched.

    cases: ((M, N, K), layout) pairs. kernel: called as kernel(a, b, c, config=…), from a module that a process can
    import. processes: by default one per core. If a configuration cannot run, or ends its process, the sweep reports it
    later.
    """
    kinds = {(tuple(map(_small, shape)), layout) for shape, layout in cases}
    # The largest tiles take the compiler longest, so they come first.
    largest = sorted(configs, key=lambda config: -config.BLOCK_M * config.BLOCK_N)
    jobs = [(kernel, shape, layout, dtype, config) for shape, layout in sorted(kinds) for config in largest]
    context = multiprocessing.get_context("spawn")  # a process forked after CUDA's start cannot use the GPU
    built = 0
    with ProcessPoolExecutor(processes or this_machine().cores, mp_context=context) as pool:
        try:
            for done in tqdm(pool.map(_build, jobs), total=len(jobs), desc="kernels compiled", mininterval=2):
                built += done
        except BrokenProcessPool:
            print("a process ended while it compiled; the sweep compiles the remaining kernels when it measures them")
    return built


def _small(size: int) -> int:
    """Return a small size for which Triton compiles the same kernel.

    Triton tests the divisibility by 16, and the kernel that by BLOCK_K, which divides 64.
    """
    return 512 + size % 64


def _build(job) -> bool:
    kernel, shape, layout, dtype, config = job
    try:
        kernel(*operands(*shape, dtype, layout), config=Config(**config.keywords()))
    except Exception:  # for example too much shared memory; the sweep records the reason
        return False
    return True
