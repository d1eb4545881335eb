"""What compilers' searches would pick here: Triton's autotuner itself and PyTorch's list of templates, answered from
a recorded sweep, and what TVM's tuners do before their models have anything to say."""

from __future__ import annotations

import inspect
import math
import random

import numpy as np
import triton
from triton.runtime.autotuner import Autotuner

from labs_helpers.compile.source import plain
from labs_helpers.course.withheld import Withheld
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.kernels.portable import fused_matmul_kernel
from labs_helpers.gemm.lab03.pictures.space import short
from labs_helpers.gemm.tuning.space import grid

# What each measures at random before its model chooses, by its own defaults: AutoTVM's XGBTuner plan_size, and the
# num_warmup_sample(s) of the XGBModel of Ansor (auto_scheduler) and of MetaSchedule.
# In python/tvm: autotvm/tuner/xgboost_tuner.py, {auto_scheduler,meta_schedule}/cost_model/xgb_model.py
TVM = {"AutoTVM": 64, "Ansor": 100, "MetaSchedule": 100}


class RecordedTuner(Autotuner):
    """Triton's autotuner with its pruning, its key and its cache, whose measurements are `bench`'s: nothing runs.

    kernel: a jitted function, for the names of its arguments. bench: a Recorded. asked: the configurations that were
    measured, in order; a key that is known asks for none.
    """

    def __init__(self, kernel, bench, key, prune_configs_by=None):
        # Lab 02's reference may be withheld: the library's kernel, whose record this is, begins with the same names.
        function = plain(fused_matmul_kernel if isinstance(kernel, Withheld) else kernel)
        self.bench, self.asked = bench, []
        super().__init__(
            fn=_Named(function),
            arg_names=list(inspect.signature(function).parameters),
            configs=[_for_triton(config) for config in grid()],
            key=key,
            reset_to_zero=None,
            restore_value=None,
            prune_configs_by=prune_configs_by,
            do_bench=lambda call, quantiles: call(),  # not asked: _bench answers
        )

    def _bench(self, *args, config, **meta):
        self.asked.append(from_triton(config))
        return [self.bench.time(self.asked[-1])] * 3


class _Named:
    """In place of a kernel: it has the function's name, and running it does nothing."""

    def __init__(self, function):
        self.fn, self.__name__ = function, function.__name__

    def run(self, *args, **kwargs):
        return None


def _for_triton(config: Config) -> triton.Config:
    blocks = {name: getattr(config, name) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")}
    return triton.Config(blocks, num_warps=config.num_warps, num_stages=config.num_stages)


def from_triton(config: triton.Config) -> Config:
    """The Config of a triton.Config of this lab's kernels."""
    return Config(**config.kwargs, num_warps=config.num_warps, num_stages=config.num_stages)


def early(prune, chip):
    """`prune` as the function that prune_configs_by={'early_config_prune': …} takes."""

    def early_config_prune(configs, named, **_):
        known = {from_triton(config): config for config in configs}
        return [known[config] for config in prune(list(known), named["M"], named["N"], named["K"], chip)]

    return early_config_prune


def autotune_here(kernel, prune, chip, n: int = 2048) -> Config:
    """The configuration that @triton.autotune finds for D = ReLU(A·B + C) of n×n×n on this machine's GPU, among what
    `prune` keeps; kept on disk under Triton's own key. kernel: lab 02's matmul_add_relu_kernel; StillOpen where the
    hand-out has none."""
    import torch

    if isinstance(kernel, Withheld):
        raise kernel.error()
    tuner = triton.autotune(
        [_for_triton(config) for config in grid()],
        key=["M", "N", "K"],
        cache_results=True,
        prune_configs_by={"early_config_prune": early(prune, chip)},
    )(kernel)
    a, b, c = (torch.randn(n, n, dtype=torch.float16, device="cuda") for _ in range(3))
    d = torch.empty_like(c)
    strides = (stride for tensor in (a, b, c, d) for stride in tensor.stride())
    tuner[lambda meta: (triton.cdiv(n, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"]))](
        a, b, c, d, n, n, n, *strides
    )
    return from_triton(tuner.best_config)


def inductor_templates() -> list[Config]:
    """The configurations that torch.compile(mode='max-autotune') tries for a matrix product by default, as the torch
    installed here lists them; [] where this version keeps them elsewhere. It tries cuBLAS beside them."""
    try:
        from torch._inductor.template_heuristics.triton import CUDAConfigHeuristic

        listed = CUDAConfigHeuristic().mm_configs
        return [Config(c.block_m, c.block_n, c.block_k, 8, c.num_warps, c.num_stages) for c in listed]
    except (ImportError, AttributeError):
        return []


def at_random(bench, measurements: int, seeds=range(200)) -> tuple[float, float]:
    """(median, worst) time in ms of the fastest of so many configurations drawn at random from all, over the seeds."""
    times = [bench.time(config) for config in grid()]
    fastest = [min(random.Random(seed).sample(times, measurements)) for seed in seeds]
    return float(np.median(fastest)), max(fastest)


def picks(bench, kernel, prune, chip):
    """DataFrame: which search measures how many of the space, what it picks at the bench's shape, and how much slower
    that is than the best ('lost', a fraction)."""
    import pandas
    import torch

    best = bench.best()[1]
    M, N, K = bench.shape
    rows = []

    def add(search, measured, config, ms):
        rows.append((search, measured, config if isinstance(config, str) else short(config), ms / best - 1))

    operands = [torch.empty(1, dtype=torch.float16)] * 4
    for name, hooks in (("all", None), ("early_config_prune", {"early_config_prune": early(prune, chip)})):
        tuner = RecordedTuner(kernel, bench, ["M", "N", "K"], hooks)
        tuner.run(*operands, M, N, K)
        chosen = from_triton(tuner.best_config)
        add(f"Triton @autotune, {name}", len(tuner.asked), chosen, bench.time(chosen))
    known = [config for config in inductor_templates() if config in bench.rows and math.isfinite(bench.time(config))]
    if known:
        chosen = min(known, key=bench.time)
        add("Inductor max-autotune, templates in this space", len(known), chosen, bench.time(chosen))
    for name, count in TVM.items():
        add(f"{name}, until its model is fitted", count, "drawn at random (median of 200)", at_random(bench, count)[0])
    return pandas.DataFrame(rows, columns=["search", "measured", "picks", "lost"])
