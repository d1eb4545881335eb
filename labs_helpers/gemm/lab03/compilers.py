"""Find what compilers' searches would pick here, with times from a recorded sweep.

The searches are Triton's own autotuner, PyTorch's list of templates, and TVM's tuners before their first fit.
"""

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

# Number of random measurements before each tuner's model chooses, by default: plan_size of AutoTVM's XGBTuner, and
# num_warmup_sample(s) of the XGBModel of Ansor (auto_scheduler) and of MetaSchedule.
# In python/tvm: autotvm/tuner/xgboost_tuner.py, {auto_scheduler,meta_schedule}/cost_model/xgb_model.py
TVM = {"AutoTVM": 64, "Ansor": 100, "MetaSchedule": 100}


class RecordedTuner(Autotuner):
    """Triton's autotuner with its pruning, key and cache, which takes its times from `bench` and runs nothing.

    kernel: a jitted function, for the names of its arguments. bench: a Recorded. asked: the configurations measured so
    far, in order. For a key in its cache, the autotuner measures none.
    """

    def __init__(self, kernel, bench, key, prune_configs_by=None):
        # Lab 02's reference may be withheld. The library's kernel, which the sweep timed, has the same first arguments.
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
            do_bench=lambda call, quantiles: call(),  # never called, because _bench is overridden
        )

    def _bench(self, *args, config, **meta):
        self.asked.append(from_triton(config))
        return [self.bench.time(self.asked[-1])] * 3


class _Named:
    """A stand-in for a kernel, with the function's name, that does nothing when it runs."""

    def __init__(self, function):
        self.fn, self.__name__ = function, function.__name__

    def run(self, *args, **kwargs):
        return None


def _for_triton(config: Config) -> triton.Config:
    blocks = {name: getattr(config, name) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")}
    return triton.Config(blocks, num_warps=config.num_warps, num_stages=config.num_stages)


def from_triton(config: triton.Config) -> Config:
    """Convert a triton.Config of this lab's kernels to a Config."""
    return Config(**config.kwargs, num_warps=config.num_warps, num_stages=config.num_stages)


def early(prune, chip):
    """Wrap `prune` for Triton's prune_configs_by={'early_config_prune': …}."""

    def early_config_prune(configs, named, **_):
        known = {from_triton(config): config for config in configs}
        return [known[config] for config in prune(list(known), named["M"], named["N"], named["K"], chip)]

    return early_config_prune


def autotune_here(kernel, prune, chip, n: int = 2048) -> Config:
    """Return the configuration that @triton.autotune finds for D = ReLU(A·B + C) of n×n×n on this machine's GPU.

    Triton measures the configurations that `prune` keeps, and stores the result on disk under its own key. kernel: lab
    02's matmul_add_relu_kernel. Raises StillOpen if the hand-out does not include it.
    """
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
    """Return the configurations that torch.compile(mode='max-autotune') tries for a matrix product, besides cuBLAS.

    They come from the installed version of PyTorch; if it keeps its list elsewhere, the result is [].
    """
    try:
        from torch._inductor.template_heuristics.triton import CUDAConfigHeuristic

        listed = CUDAConfigHeuristic().mm_configs
        return [Config(c.block_m, c.block_n, c.block_k, 8, c.num_warps, c.num_stages) for c in listed]
    except (ImportError, AttributeError):
        return []


def at_random(bench, measurements: int, seeds=range(200)) -> tuple[float, float]:
    """Return the (median, worst) time in ms, over seeds, of the fastest of `measurements` random configurations."""
    times = [bench.time(config) for config in grid()]
    fastest = [min(random.Random(seed).sample(times, measurements)) for seed in seeds]
    return float(np.median(fastest)), max(fastest)


def picks(bench, kernel, prune, chip):
    """Return a DataFrame of searches: how many configurations each measures, its pick, and how much slower that is.

    'lost' is a fraction, relative to the best configuration at the bench's shape.
    """
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
