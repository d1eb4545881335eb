"""Time `fused_matmul` and PyTorch's alternatives at random shapes: `python -m labs_helpers.gemm.study --random 200`.

The first pass times every shape. For it, torch.compile compiles once, for dynamic sizes. Like a compilation for one
shape, this calls cuBLAS and adds one elementwise kernel, and compiling 200 times would take most of an hour. The second
pass repeats the first shapes with torch.compile and max-autotune compiled for each of them. Without a GPU the shapes
are small, and only PyTorch is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.ratios import draw_ratios
from labs_helpers.gemm.fused import fused_matmul
from labs_helpers.gemm.plan import plan
from labs_helpers.gemm.random_shapes import KINDS, Shape, random_shapes
from labs_helpers.gemm.study import ACCURATE, EAGER, OURS, formula
from labs_helpers.gemm.tuning.operands import operands, rounding_bound
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.random_study import RandomStudy
from labs_helpers.measure.right import time_what_is_right
from labs_helpers.measure.study import Study

if TYPE_CHECKING:
    import pandas

STUDY = "gemm-random"
COMPILED = "torch.compile"  # for one shape; in the first pass for changing ones
Way = Callable[[Tensor, Tensor, Tensor], Tensor]


@cache
def ways(compiled: str | None) -> dict[str, Way]:
    """Return name → function of (a, b, c). compiled: None, or how torch.compile compiles: 'dynamic' or 'static'."""
    found: dict[str, Way] = {EAGER: formula, "addmm + relu": lambda a, b, c: torch.addmm(c, a, b).relu_()}
    on_gpu = this_machine().device == "cuda"
    if on_gpu:
        found["_addmm_activation"] = lambda a, b, c: torch._addmm_activation(c, a, b)
    if compiled == "dynamic":
        torch._dynamo.reset()
        # fullgraph raises an error at the limit of recompilations, instead of falling back to eager mode silently.
        found[f"{COMPILED}, changing sizes"] = torch.compile(formula, dynamic=True, fullgraph=True)
    if compiled == "static":
        found[COMPILED] = torch.compile(formula, dynamic=False)
        if on_gpu:
            found[f"{COMPILED}, max-autotune"] = torch.compile(
                formula, dynamic=False, mode="max-autotune-no-cudagraphs"
            )
    if on_gpu:
        found[OURS] = fused_matmul
    return found


def measure(
    shape: Shape,
    dtype: torch.dtype,
    autotuned: bool,
    *,
    compile_: bool = True,
    rounds: int = 3,
    ms: float = 30,
) -> list[dict]:
    """Return one record per candidate at one shape, timed by calls and, on a GPU, from a CUDA graph; times in ms.

    autotuned: use torch.compile compiled for this shape. ms: time to spend on each candidate, over all rounds.
    """
    if autotuned:
        torch._dynamo.reset()
    chosen = ways(None if not compile_ else "static" if autotuned else "dynamic")
    with torch._dynamo.config.patch(recompile_limit=64):
        return measure_shape(shape, dtype, chosen, rounds, ms)


def measure_shape(shape: Shape, dtype: torch.dtype, candidates: dict[str, Way], rounds: int, ms: float) -> list[dict]:
    """Return one record per candidate and way of timing.

    A candidate that fails, or whose result is wrong compared with float64, has an `error` and no time.
    """
    M, N, K = shape.M, shape.N, shape.K
    a, b, c = operands(M, N, K, dtype)
    about: dict[str, Any] = {"study": STUDY, "shape": shape.kind, "M": M, "N": N, "K": K}
    about["dtype"] = str(dtype).removeprefix("torch.")
    if OURS in candidates:
        about["plan"] = str(plan(a, b, c))
    exact = torch.relu(a.double() @ b.double() + c.double())
    bound = rounding_bound(a, b, c, exact)

    def check(name: str, result: Tensor) -> float:
        away = (result.double() - exact).abs()
        error = float(away.norm() / exact.norm())
        # Each element of our result is checked, but only the norm of PyTorch's, which may sum in lower precision or
        # round twice.
        stray = int((~(away <= bound)).sum()) if name == OURS else 0
        if stray or not error < ACCURATE[dtype]:
            raise ValueError(f"wrong: {stray} elements beyond the bound, relative error {error:.2g}")
        return error

    calls = {name: partial(way, a, b, c) for name, way in candidates.items()}
    graphs = (False, True) if this_machine().device == "cuda" else (False,)
    return time_what_is_right(calls, check, about, graphs=graphs, rounds=rounds, warmup_ms=5, repeat_ms=ms)


def _more(times: pandas.DataFrame, ms: float) -> dict[str, Any]:
    first = times.iloc[0]
    return {
        "flops": 2 * first["M"] * first["N"] * first["K"],
        "eager": times["median_ms"].get(EAGER, float("nan")) / ms,
    }


RANDOM = RandomStudy(
    Study(STUDY, "python -m labs_helpers.gemm.study --random 200 --seed 7"),
    OURS,
    random_shapes,
    measure,
    ("M", "N", "K"),
    _more,
    shown=(("shape", "M", "N", "K"), ("eager",)),
)
run, load, ratios, summary = RANDOM.run, RANDOM.study.load, RANDOM.ratios, RANDOM.summary


@beside_yours(STUDY)
def draw_random(frame: pandas.DataFrame, dtype: str | None = None) -> Figure:
    """Draw the best baseline's time over ours against the product's FLOPs, with one point per shape."""
    looks = {kind: ({"shape": kind}, role, role) for role, kind in enumerate(KINDS)}
    return draw_ratios(ratios(frame, dtype), looks, "shapes", "FLOPs, 2·M·N·K", recorded_on(frame))
