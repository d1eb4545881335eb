"""Race products with few rows in every format of the weight: microseconds, from CUDA graphs, with cold weights.

    python -m labs_helpers.quantization.few_rows_study --seconds 240          # the default plan, and other libraries
    python -m labs_helpers.quantization.few_rows_study --seconds 240 --tune   # other configurations as well

Each call in a graph reads another copy of the weight; together the copies are far larger than the L2 cache. Shapes that
do not fit into the time are left out. A product that is wrong against float64 gets an error instead of a time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from labs_helpers.launch import program
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.right import said
from labs_helpers.measure.study import Study
from labs_helpers.quantization.packing import unpack_int4
from labs_helpers.quantization.weights import Fp8Weight, Int4Weight, Int8Weight, PairedInt4Weight

STUDY = Study("quantization-few-rows", "python -m labs_helpers.quantization.few_rows_study")
load = STUDY.load
SHAPES = ((4096, 14336), (8192, 8192), (2048, 5632))  # K, N
ROWS = (1, 2, 4, 8, 16, 32, 64)
SOME_ROWS = (1, 4, 16, 64)  # at random shapes
FORMATS = ("bf16", "int8", "int4", "fp8")
BANDWIDTH = 4.27e12  # bytes per second that a copy reaches on an H200
COLD = 300e6  # bytes of all copies of a weight
WRONG = 0.03  # relative error in norm, of float8 and int8 inputs as well; more is a mistake, not rounding
Run = Callable[[Tensor, Any], Tensor]
Way = tuple[str, str, Any, Run, int]
Race = Callable[[int, int, bool, float], Iterator[dict[str, Any]]]  # of (K, N, tune, until)


def random_shapes(count: int, seed: int = 7) -> list[tuple[int, int]]:
    """Return (K, N) pairs, multiples of 128 from 1024 to 16,384 that are evenly spread in their logarithms."""
    draw = random.Random(seed)
    return [(round(2 ** draw.uniform(3, 7)) * 128, round(2 ** draw.uniform(3, 7)) * 128) for _ in range(count)]


def int4_of_torch(weight: Int4Weight) -> tuple[Tensor, Tensor]:
    """Return what `torch._weight_int4pack_mm` reads for the same values: scale · (code − 8) + offset."""
    codes = unpack_int4(weight.packed)
    packed = torch._convert_weight_to_int4pack((codes[:, 0::2] << 4 | codes[:, 1::2]).contiguous(), 8)
    offset = (8 - weight.zero.float()) * weight.scale.float()
    return packed, torch.stack([weight.scale, offset.to(torch.bfloat16)], dim=2).transpose(0, 1).contiguous()


def ways(w: Tensor, few_rows: Run) -> Iterator[Way]:
    """Yield our products and PyTorch's, with weights that round w: (format, name, stored weight, product of
    (x, stored), bytes of the weight)."""
    int8, int4, fp8 = Int8Weight.quantize(w), Int4Weight.quantize(w), Fp8Weight.quantize(w)
    for format, weight in zip(FORMATS, (w, int8, PairedInt4Weight.of(int4), fp8), strict=True):
        yield format, "few_rows", weight, few_rows, weight.nbytes
    yield "bf16", "F.linear", w, F.linear, w.nbytes

    def packed(x: Tensor, p: Any) -> Tensor:
        return torch._weight_int4pack_mm(x, p[0], int4.group, p[1])

    yield "int4", "_weight_int4pack_mm", int4_of_torch(int4), packed, int4.nbytes


def slow_ways(w: Tensor) -> Iterator[Way]:
    """Yield the products that take seconds per shape to compile or to tune themselves: torch.compile's, and gemlite's
    if it is installed."""
    int8, int4 = Int8Weight.quantize(w), Int4Weight.quantize(w)
    torch._dynamo.reset()  # at its limit of recompilations, torch.compile would fall back to eager mode silently
    compiled = torch.compile(lambda x, q, scale: F.linear(x, q.to(x.dtype)) * scale, dynamic=False)
    yield "int8", "torch.compile", (int8.q, int8.scale.bfloat16()), lambda x, p: compiled(x, *p), int8.nbytes
    if find_spec("gemlite") is None:
        return
    helper = import_module("gemlite.helper")  # no dependency of the course
    here: Any = {"device": "cuda:0", "dtype": torch.bfloat16}

    def product(x: Tensor, layer: Any) -> Tensor:
        return layer(x)

    codes, zero = unpack_int4(int4.packed), int4.zero.to(int4.scale.dtype)
    layer4 = helper.A16Wn(**here).from_weights(codes, int4.scale, zero, 4, int4.group)
    yield "int4", "gemlite", layer4, product, int4.nbytes
    layer8 = helper.A16W8_INT8(**here).from_weights(int8.q, scales=int8.scale[:, None])
    yield "int8", "gemlite", layer8, product, int8.nbytes


def graph_us(run: Run, x: Tensor, copies: list[Any], calls: int) -> float:
    """Return microseconds per call, the median of five replays of a graph that goes through the copies."""
    run(x, copies[0])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(calls):
            run(x, copies[i % len(copies)])
    times = []
    for _ in range(6):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / calls)
    return sorted(times[1:])[2]  # the first replay uploads the graph


def timed(
    about: dict[str, Any], run: Run, x: Tensor, copies: list[Any], exact: Tensor, wrong: float = WRONG
) -> dict[str, Any]:
    """Return `about` with the microseconds of run(x, copy), and its error relative to `exact`; or with why not.

    wrong: the relative error in norm from which on the product gets no time.
    """
    try:
        error = float((run(x, copies[0]).double() - exact).norm() / exact.norm())
        if not error < wrong:
            raise ValueError(f"wrong: relative error {error:.2g}")
        return about | {"us": graph_us(run, x, copies, max(24, len(copies))), "relative_error": error}
    except Exception as failure:  # a candidate that cannot run is a result too
        return about | {"error": said(failure)}


def race_shape(
    K: int, N: int, configs: dict[str, list[Any]], until: float, slow: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield one record per number of rows, format and product at one shape, until a `time.monotonic()`.

    slow: race `slow_ways` instead of `ways`.
    """
    from labs_helpers.quantization.kernels.few_rows import few_rows

    w = torch.randn(N, K, device="cuda", dtype=torch.bfloat16) / K**0.5
    for format, name, stored, run, nbytes in slow_ways(w) if slow else ways(w, few_rows):
        copies = [stored, *(deepcopy(stored) for _ in range(int(COLD // nbytes)))]
        values = w if format == "bf16" else {"int8": Int8Weight, "int4": Int4Weight, "fp8": Fp8Weight}[
            format
        ].quantize(w).dequantize()  # fmt: skip
        for M in ROWS if (K, N) in SHAPES and not slow else SOME_ROWS:
            if time.monotonic() > until:
                return
            x = torch.randn(M, K, device="cuda", dtype=torch.bfloat16)
            exact = x.double() @ values.double().T
            for config in [None, *(configs.get(format, []) if name == "few_rows" else [])]:
                call = run if config is None else (lambda x, p, c=config: few_rows(x, p, config=c))
                about = {"K": K, "N": N, "M": M, "format": format, "name": name, "config": str(config or "default")}
                about |= {"roof_us": nbytes / BANDWIDTH * 1e6, "weight_bytes": nbytes, "copies": len(copies)}
                yield timed(about, call, x, copies, exact)


def table(frame: Any) -> Any:
    """Return, per shape, format and product, microseconds by number of rows, of the fastest configuration."""
    if "us" not in frame:
        return frame[["format", "name", "error"]].drop_duplicates()
    rows = [column for column in ("K", "N", "format", "roof_us", "name") if column in frame]
    return frame.pivot_table(index=rows, columns="M", values="us", aggfunc="min").round(1).reset_index()


def main(arguments: list[str] | None = None) -> None:
    def race(K: int, N: int, tune: bool, until: float) -> Iterator[dict[str, Any]]:
        from labs_helpers.quantization.kernels.few_rows import FewRowsConfig

        sizes = product((16, 32, 64), (2, 4), (64, 128), (2, 3, 4))
        some = [FewRowsConfig(n, warps, k, warps, stages, 1) for n, warps, k, stages in sizes]
        some += [FewRowsConfig(n, 1, 128, 4, stages, 2) for n in (64, 128) for stages in (3, 5)]
        return race_shape(K, N, dict.fromkeys(FORMATS, some) if tune else {}, until)

    def race_slowly(K: int, N: int, tune: bool, until: float) -> Iterator[dict[str, Any]]:
        return race_shape(K, N, {}, until, slow=True)

    race_all(STUDY, __doc__, race, arguments, race_slowly)


def race_all(
    study: Study, about: str | None, race: Race, arguments: list[str] | None, last: Race | None = None
) -> None:
    """Parse the arguments, race at every shape, then run `last` at the fixed ones, until the time is over. The records
    of each of the two are kept when it ends. about: the help text."""
    parser = study.parser(about)
    parser.add_argument("--seconds", type=float, default=240, help="stop measuring after this time")
    parser.add_argument("--random", type=int, default=0, help="random shapes, after the three fixed ones")
    parser.add_argument("--tune", action="store_true", help="time other configurations of our kernels too")
    chosen = parser.parse_args(arguments)
    prepare_triton()
    if this_machine().device != "cuda":
        parser.error("the race needs a GPU")
    until = time.monotonic() + chosen.seconds
    torch.manual_seed(0)
    every = [*SHAPES, *random_shapes(chosen.random)]
    for run, shapes in ((race, every), *([(last, SHAPES)] if last else [])):
        found: list[dict[str, Any]] = []
        try:
            for K, N in shapes:
                for record in run(K, N, chosen.tune, until):
                    found.append(record)
                    if "error" in record:
                        print(record["K"], record["N"], record["M"], record["name"], record["error"], flush=True)
                torch.cuda.empty_cache()
        finally:  # an error keeps what was measured before it
            study.keep(found, chosen.out, table=table if found else None)


if __name__ == "__main__":
    program.run(main)
