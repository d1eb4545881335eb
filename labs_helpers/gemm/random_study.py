"""Time `fused_matmul` and PyTorch's ways at shapes drawn at random: `python -m labs_helpers.gemm.study --random 200`.

The first pass takes every shape. There torch.compile is compiled once, for sizes that may change: both that and a
compilation for one shape call cuBLAS and add one elementwise kernel, and compiling 200 times would take most of the
hour. The second pass repeats the first shapes with torch.compile and max-autotune made for each of them.
Without a GPU shapes are small and PyTorch's ways are timed alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labs_helpers.gemm.fused import fused_matmul
from labs_helpers.gemm.plan import plan
from labs_helpers.gemm.random_shapes import Shape, random_shapes
from labs_helpers.gemm.study import EAGER, OURS, formula
from labs_helpers.gemm.tuning.operands import rounding_bound
from labs_helpers.measure import results
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.provenance import provenance
from labs_helpers.measure.study import destination
from labs_helpers.measure.timing import MeasurementError, measure_rounds

STUDY = "gemm-random"
COMPILED = "torch.compile"  # for one shape; in the first pass for changing ones
Way = Callable[[Tensor, Tensor, Tensor], Tensor]


def ways(compiled: str | None) -> dict[str, Way]:
    """Name → function of (a, b, c). compiled: None for no torch.compile, 'dynamic', or 'static' with max-autotune."""
    found: dict[str, Way] = {EAGER: formula, "addmm + relu": lambda a, b, c: torch.addmm(c, a, b).relu_()}
    on_gpu = this_machine().device == "cuda"
    if on_gpu:
        found["_addmm_activation"] = lambda a, b, c: torch._addmm_activation(c, a, b)
    if compiled == "dynamic":
        # fullgraph: an error, and not eager mode without a word, should the limit of recompilations be reached.
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


def measure_shape(shape: Shape, dtype: torch.dtype, candidates: dict[str, Way], rounds: int, ms: float) -> list[dict]:
    """A record for each candidate, called and (on a GPU) replayed from a CUDA graph; times in ms. One that fails, or
    whose result is wrong against float64, has an `error` and no time.

    ms: for each candidate, over all rounds.
    """
    device = this_machine().device
    generator = torch.Generator(device).manual_seed(shape.M + shape.N + shape.K)
    M, N, K = shape.M, shape.N, shape.K
    a, b, c = (torch.randn(*size, dtype=dtype, device=device, generator=generator) for size in ((M, K), (K, N), (M, N)))
    common: dict[str, Any] = {"study": STUDY, "shape": shape.kind, "M": M, "N": N, "K": K}
    common["dtype"] = str(dtype).removeprefix("torch.")
    if OURS in candidates:
        common["plan"] = str(plan(a, b, c))
    exact = torch.relu(a.double() @ b.double() + c.double())
    bound = rounding_bound(a, b, c, exact)
    errors, records, right = {}, [], {}
    for name, way in candidates.items():
        try:
            away = (way(a, b, c).double() - exact).abs()
        except Exception as error:  # a way that cannot run is a result of the study
            records.append(common | {"name": name, "error": f"{type(error).__name__}: {error}"[:300]})
            continue
        errors[name] = float(away.norm() / exact.norm())
        # Each element of ours; of PyTorch's the norm alone, for it may add up in lower precision, or round twice.
        stray = int((~(away <= bound)).sum()) if name == OURS else 0
        if stray or not errors[name] < (1e-2 if dtype == torch.bfloat16 else 3e-3):
            wrong = f"wrong: {stray} elements beyond the bound, relative error {errors[name]:.2g}"
            records.append(common | {"name": name, "error": wrong})
        else:
            right[name] = partial(way, a, b, c)
    del exact, bound
    for graph in (False, True) if device == "cuda" else (False,):
        try:
            timings = measure_rounds(right, rounds=rounds, warmup_ms=5, repeat_ms=ms, graph=graph)
        except MeasurementError as error:
            records.append(common | {"name": str(error).split(" failed")[0], "graph": graph, "error": str(error)[:300]})
            continue
        records += [
            common
            | {"name": name, "graph": graph, "median_ms": t.median_ms, "p20_ms": t.p20_ms, "p80_ms": t.p80_ms}
            | {"runs": t.runs, "rounds": rounds, "cold_l2": device == "cuda" and not graph}
            | {"relative_error": errors[name]}
            for name, t in timings.items()
        ]
    return records


def run(
    count: int,
    seed: int,
    dtype: torch.dtype,
    out: Path | None = None,
    *,
    autotuned: int = 20,
    compile_: bool = True,
    rounds: int = 3,
    ms: float = 30,
    seconds: float = float("inf"),
) -> list[dict]:
    """Measure what the file does not hold yet of this machine, commit, seed and dtype, and append it shape by shape.

    autotuned: how many of the first shapes the second pass takes. seconds: begin no other shape after so long.
    Returns the new records.
    """
    path, on = destination(STUDY, out), provenance()
    shapes = random_shapes(count, seed, small=this_machine().device != "cuda")
    known = _known(path, on, seed, str(dtype).removeprefix("torch."))
    candidates = {False: ways("dynamic" if compile_ else None), True: ways("static" if compile_ else None)}
    began, new = time.monotonic(), []
    for index, autotune in _order(count, autotuned if compile_ else 0):
        if (index, autotune) in known:
            continue
        if time.monotonic() - began > seconds:
            print(f"{seconds:.0f} s are over before shape {index}; the same command goes on there")
            break
        started = time.monotonic()
        if autotune or not new:
            torch._dynamo.reset()
        with torch._dynamo.config.patch(recompile_limit=64):
            records = measure_shape(shapes[index], dtype, candidates[autotune], rounds, ms)
        extra = {"seed": seed, "index": index, "autotuned": autotune, "on": on}
        new += (records := [record | extra for record in records])
        results.append(path, records)
        print(f"{index}: {shapes[index]} {time.monotonic() - started:.1f} s", flush=True)
    return new


def _order(count: int, autotuned: int) -> Iterator[tuple[int, bool]]:
    yield from ((index, False) for index in range(count))
    yield from ((index, True) for index in range(min(count, autotuned)))


def _known(path: Path, on: dict, seed: int, dtype: str) -> set[tuple[int, bool]]:
    """(index, autotuned) of what the file holds of this machine and commit."""
    if not path.is_file():
        return set()
    frame = results.load(path)
    same = (frame["seed"] == seed) & (frame["dtype"] == dtype)
    for name in ("machine", "commit", "torch", "triton"):
        same &= frame[f"on.{name}"].isna() if on[name] is None else frame[f"on.{name}"] == on[name]
    return set(zip(frame["index"][same].astype(int), frame["autotuned"][same].astype(bool), strict=True))
