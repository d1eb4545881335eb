"""Time every configuration of the Hopper and split-K kernels at random shapes, from CUDA graphs, for the time model.

python -m labs_helpers.gemm.tuning.hopper_sweep [--dtype float16] [--seconds 300]

The command skips shapes in the file, so you can interrupt and resume it. Then fit the models to the file:
python -m labs_helpers.gemm.tuning.model_study FILE --write labs_helpers/gemm/tuned
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

import torch

from labs_helpers.compile import counters
from labs_helpers.gemm.kernels.hopper import FEW_ROWS, HopperConfig, gluon_fits, hopper_matmul
from labs_helpers.gemm.kernels.padded import copy_rows, padded
from labs_helpers.gemm.kernels.split_k import split_k_matmul, worth_timing
from labs_helpers.gemm.random_shapes import random_shapes
from labs_helpers.gemm.random_study import ways
from labs_helpers.gemm.time_model import Shape
from labs_helpers.gemm.tuning.hopper_space import hopper_grid
from labs_helpers.gemm.tuning.operands import rounding_bound
from labs_helpers.launch import program
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.study import Study

STUDY = Study("gemm-hopper-tuning", "python -m labs_helpers.gemm.tuning.hopper_sweep")
SEED = 11  # a different seed from the study's, whose shapes stay unseen
FEW_TILES = 264  # tiles of 128×128, two per SM of an H100
GRAPH_COUNTERS = 2**26  # enough for hundreds of graphs


def shapes() -> list[Shape]:
    """Return a decoder's shapes, then random ones for the Hopper kernel: in turn few rows, few tiles and others."""
    drawn = [shape for shape in random_shapes(400, SEED) if shape.kind != "unaligned" and shape.K > 128]
    kinds: dict[str, list[Shape]] = {"few rows": [], "few tiles": [], "others": []}
    for kind, M, N, K in drawn:
        few = -(-M // 128) * -(-N // 128) < FEW_TILES
        kinds[kind if kind == "few rows" else "few tiles" if few else "others"].append((M, N, K))
    by_turns = zip_longest(kinds["few rows"][:30], kinds["few tiles"][:26], kinds["others"][:34])
    usual = [(M, N, K) for N, K in ((4096, 4096), (14_336, 4096), (4096, 14_336)) for M in (1, 16, 64, 128)]
    return usual + [shape for turn in by_turns for shape in turn if shape]


def candidates(shape: Shape, multiprocessors: int) -> Iterator[tuple[str, Any]]:
    """Return the (kernel, configuration) pairs to time at (M, N, K).

    With few tiles they include configurations that split K, and with few rows also the split-K kernel.
    """
    for config in hopper_grid():
        for splits in config.parts(shape, multiprocessors):
            yield "hopper", replace(config, SPLITS=splits)
    if shape[0] > FEW_ROWS:
        return
    for split in worth_timing(shape[0]):
        for splits in split.parts(shape, multiprocessors):
            yield "split_k", replace(split, SPLITS=splits)


def measure_shape(shape: Shape, dtype: torch.dtype, graph_ms: Callable[[Callable], float]) -> list[dict]:
    """Return one record per candidate at one shape, with times in ms.

    Records also cover PyTorch's alternatives, `fused_matmul` itself, and copies of B and of A and B. A candidate that
    fails, or is wrong compared with float64, has an `error` and no time.
    """
    M, N, K = shape
    generator = torch.Generator("cuda").manual_seed(M + N + K)
    a, b, c = (torch.randn(*size, dtype=dtype, device="cuda", generator=generator) for size in ((M, K), (K, N), (M, N)))
    exact = torch.relu(a.double() @ b.double() + c.double())
    bound = rounding_bound(a, b, c, exact)
    sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    common = {"study": STUDY.name, "M": M, "N": N, "K": K, "dtype": str(dtype).removeprefix("torch."), "graph": True}
    common["multiprocessors"] = sms
    records = []
    for kernel, config in candidates(shape, sms):
        known = common | {"kind": kernel} | config.keywords() | {"SPLITS": config.SPLITS}
        call = partial(hopper_matmul if isinstance(config, HopperConfig) else split_k_matmul, a, b, c, config)
        try:
            stray = int((~((call().double() - exact).abs() <= bound)).sum())
            records.append(known | ({"error": f"wrong: {stray} elements"} if stray else {"median_ms": graph_ms(call)}))
        except Exception as error:  # a configuration that cannot run is a result of the sweep
            records.append(known | {"error": f"{type(error).__name__}: {error}"[:200]})
    for copied in ([b], [a, b]):
        pairs = [(x, padded(*x.shape, x.dtype, x.device)) for x in copied]
        known = {"kind": "copy", "bytes": 2 * sum(x.nbytes for x in copied)}  # read and written
        records.append(common | known | {"median_ms": graph_ms(partial(copy_rows, *pairs))})
    for name, way in ways(None).items():
        records.append(common | {"kind": name, "median_ms": graph_ms(partial(way, a, b, c))})
    return records


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__, limit=12 * program.HOUR)
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), default="float16")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="start no further shape after this many seconds"
    )
    given = parser.parse_args(arguments)
    if this_machine().architecture != "sm_90" or not gluon_fits():
        parser.error(f"the Hopper kernel needs sm_90 and the Gluon of Triton 3.6 or 3.7; this is {this_machine()}")
    from triton.testing import do_bench_cudagraph

    counters.RESERVE = GRAPH_COUNTERS
    graph_ms = partial(do_bench_cudagraph, rep=1.5, return_mode="median")

    def measure(shape: Shape) -> list[dict]:
        records = measure_shape(shape, getattr(torch, given.dtype), graph_ms)
        timed = [record for record in records if "median_ms" in record and record["kind"] in ("hopper", "split_k")]
        best = min(timed, key=lambda record: record["median_ms"])
        print(f"{best['median_ms']:.4f} ms by {best['kind']}, ", end="")
        return records

    items = [(shape, shape) for shape in shapes()]
    STUDY.go_on(items, "MNK", measure, given.out, same={"dtype": given.dtype}, seconds=given.seconds)


if __name__ == "__main__":
    program.run(main)
