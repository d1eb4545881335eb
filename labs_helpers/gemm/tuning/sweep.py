"""Record the times of every configuration of a kernel at some shapes, or the compiler's report on each.

python -m labs_helpers.gemm.tuning.sweep compile      # resources on T4, A100 and H100, without a GPU
python -m labs_helpers.gemm.tuning.sweep measure      # times on this machine's GPU
python -m labs_helpers.gemm.tuning.sweep held-out     # times at shapes that no rule of the lab was fitted to
python -m labs_helpers.gemm.tuning.sweep waves        # times of one configuration with more and more rows of tiles
python -m labs_helpers.gemm.tuning.sweep long         # times of a few configurations in short and long runs
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import torch
from tqdm.auto import tqdm

from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.fused import fused_matmul
from labs_helpers.gemm.tuning.build_first import build_first
from labs_helpers.gemm.tuning.compile_table import compile_table
from labs_helpers.gemm.tuning.long_runs import measure_long
from labs_helpers.gemm.tuning.operands import TOLERANCE, operands, rounding_bound
from labs_helpers.gemm.tuning.recorded import STUDY
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.launch import program
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.timing import MeasurementError
from labs_helpers.measure.timing import measure as time_it

# Squares, and the layers of a LLaMA-7B on 4096 tokens: attention's, and the two of the feed-forward network.
SHAPES = (
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (4096, 4096, 1024),
    (4096, 11008, 4096),
    (4096, 4096, 11008),
)
# The constants of lab 03's pruner were chosen for the shapes above. These were measured afterwards: a little more than
# one wave, a small square, oblong shapes, the feed-forward layer of a LLaMA-13B on 26 rows of tiles, a transposed B,
# and sizes that 16 does not divide.
HELD_OUT = (
    ((2176, 4096, 4096), "rows"),
    ((1536, 1536, 1536), "rows"),
    ((512, 8192, 4096), "rows"),
    ((3328, 5120, 13824), "rows"),
    ((4096, 4096, 4096), "B transposed"),
    ((2040, 2040, 2040), "rows"),
    ((8192, 1024, 2048), "rows"),
)
WAVE_CONFIG = Config(128, 256, 64, num_warps=8, num_stages=3)  # one program fits on an SM of an H200


def measure_sweep(
    shapes=SHAPES,
    configs=None,
    dtype=torch.float16,
    repeat_ms: float = 25,
    kernel=fused_matmul,
    name: str = "fused_matmul",
    formula=None,
    kind: str = "measured",
    layout: str = "rows",
) -> list[dict]:
    """Return one record per shape and configuration: the median in ms, or the reason for its absence (`error`).

    kernel: called as kernel(a, b, c, config=…), with C of M×N. formula: the same in plain PyTorch, called with float64;
    by default ReLU(A·B + C). layout: one of `operands.LAYOUTS`. A configuration is timed only after its result was
    compared with float64. A progress bar is shown, and an interrupt keeps the records so far.
    """
    records = []
    configs = configs or grid()
    try:
        for M, N, K in shapes:
            a, b, c = operands(M, N, K, dtype, layout)
            expected = (formula or _relu_formula)(a.double(), b.double(), c.double())
            bound = rounding_bound(a, b, c, expected)
            for config in tqdm(configs, desc=f"{M}×{N}×{K}", mininterval=2):
                record = {
                    "study": STUDY.name,
                    "kind": kind,
                    "kernel": name,
                    "M": M,
                    "N": N,
                    "K": K,
                    "dtype": str(dtype).removeprefix("torch."),
                    **config.keywords(),
                }
                if layout != "rows":
                    record["layout"] = layout
                records.append(
                    record | _measure_one(partial(kernel, a, b, c, config=config), expected, bound, repeat_ms)
                )
    except KeyboardInterrupt:
        print(f"interrupted: {len(records)} measurements are kept")
    return records


def _measure_one(function, expected, bound, repeat_ms: float) -> dict:
    try:
        errors = (function().double() - expected).abs()
        error = float(errors.norm() / expected.norm())
        # Both are needed: a norm hides a few wrong elements among millions, and the bound is far above typical errors.
        if not (error < TOLERANCE and bool((errors <= bound).all())):
            return {"error": f"wrong: {int((~(errors <= bound)).sum())} elements, relative error {error:.2g}"}
        timing = time_it(function, warmup_ms=5, repeat_ms=repeat_ms)
    except MeasurementError as error:
        return {"error": str(error.__cause__)[:200]}
    except Exception as error:  # a configuration that cannot run is a result of the sweep
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return timing.record() | {"relative_error": error}


def _relu_formula(a, b, c):
    return torch.relu(a @ b + c)


def measure_waves(rows: int = 66, N: int = 4096, K: int = 4096, repeat_ms: float = 60) -> list[dict]:
    """Return records of kind 'waves' for M of 1, 2, … `rows` tiles, with a configuration of one program per SM."""
    shapes = [(WAVE_CONFIG.BLOCK_M * row, N, K) for row in range(1, rows + 1)]
    return measure_sweep(shapes, [WAVE_CONFIG], repeat_ms=repeat_ms, kind="waves")


def measure_held_out(cases=HELD_OUT, configs=None) -> list[dict]:
    """Return records of kind 'held out', for shapes and layouts that the lab's rules were not fitted to."""
    return [
        record for shape, layout in cases for record in measure_sweep([shape], configs, kind="held out", layout=layout)
    ]


def main(arguments=None) -> None:
    parser = STUDY.parser(__doc__, limit=12 * program.HOUR)
    parser.add_argument("what", choices=("compile", "measure", "held-out", "waves", "long"))
    parser.add_argument(
        "--shapes", type=_shape, nargs="+", help="shapes for measure, held-out and long, like 4096x4096x1024"
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="start no further shape after this many seconds"
    )
    given = parser.parse_args(arguments)
    if given.what != "compile" and this_machine().device != "cuda":
        parser.error("this sweep needs a GPU: the interpreter's time says nothing about a kernel")
    began, out = time.monotonic(), STUDY.path(given.out, "compiled" if given.what == "compile" else None)
    for records in _records(given.what, given.shapes):
        STUDY.keep(records, out)
        if time.monotonic() - began > given.seconds:
            break


def _records(what: str, shapes):
    """Yield lists of records, one per shape if possible, so each list can be stored before the next shape begins."""
    if what == "compile":
        yield compile_table()
    elif what == "waves":
        yield measure_waves()
    elif what == "long":
        for shape in shapes or ((4096, 4096, 4096), (8192, 8192, 8192)):
            yield measure_long(shape)
    else:
        cases = [(shape, "rows") for shape in SHAPES] if what == "measure" else HELD_OUT
        chosen = [case for case in cases if not shapes or case[0] in shapes]
        build_first(chosen, grid(), fused_matmul)
        for case in chosen:
            yield measure_sweep([case[0]]) if what == "measure" else measure_held_out([case])


def _shape(text: str) -> tuple[int, ...]:
    sizes = tuple(map(int, text.replace("×", "x").split("x")))
    if len(sizes) != 3 or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not M, N and K, as in 4096x4096x1024")
    return sizes


if __name__ == "__main__":
    program.run(main)
