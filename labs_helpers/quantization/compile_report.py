"""The compile report of the kernels that read quantized weights, for every target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

from labs_helpers.compile.ahead_of_time import TARGETS
from labs_helpers.compile.launches import record_launches
from labs_helpers.compile.report import Build, compile_report
from labs_helpers.measure.machine import this_machine
from labs_helpers.quantization.kernels.chips import has_ptx
from labs_helpers.quantization.kernels.few_rows import few_rows, few_rows_config
from labs_helpers.quantization.kernels.many_rows import dequantized, fused_rows, rounded_rows, table_for
from labs_helpers.quantization.kernels.round_rows import round_rows
from labs_helpers.quantization.weights import Fp8Weight, Int4Weight, Int8Weight, PairedInt4Weight

WITH_FLOAT8 = ("sm_90", "sm_100")
FORMATS = ("int8", "int4", "fp8")


def compile_everywhere(targets: Iterable[str] = tuple(TARGETS), formats: Iterable[str] = FORMATS):
    """Return the compile report of every kernel, with all configurations of the target, for 512 × 1024 weights.

    See `compile.report.compile_report`; the column format is added. x is bfloat16, on sm_75 float16. Targets without
    float8 have no rows for fp8. Raises ValueError for an unknown target, and CompileError, which names kernel and
    target, if a build fails.
    """
    return compile_report(build for target in targets for format in list(formats) for build in _builds(target, format))


def _builds(target: str, format: str) -> Iterator[Build]:
    if target not in TARGETS:
        raise ValueError(f"target {target!r} is not one of {', '.join(TARGETS)}")
    if format == "fp8" and target not in WITH_FLOAT8:
        return
    dtype = torch.float16 if target == "sm_75" else torch.bfloat16
    w, x = (torch.zeros(rows, 1024, device=this_machine().device, dtype=dtype) for rows in (512, 64))
    weight: Int8Weight | Fp8Weight | PairedInt4Weight
    if format == "int4":
        weight = PairedInt4Weight.of(Int4Weight.quantize(w))
    else:
        weight = (Int8Weight if format == "int8" else Fp8Weight).quantize(w)
    with record_launches(run=False) as launches:
        for M in (16, 64):
            few_rows(x[:M], weight, config=few_rows_config(M, 512, 1, target, 132))
        dequantized(weight, x.dtype)
        for config in table_for(False, target):
            fused_rows(x, weight, config)
        if not isinstance(weight, PairedInt4Weight):
            codes, scale = round_rows(x, weight.q.dtype)
            for config in table_for(True, target):
                rounded_rows(codes, scale, weight, x.dtype, config)
    for launch in launches:
        if "PTX" in launch.arguments:
            launch.arguments["PTX"] = has_ptx(target)
        rounded = launch.arguments.get("ROUNDED", launch.name == "round_rows_kernel")
        yield Build(launch.name, launch, target, {"format": f"{format} × {format}" if rounded else format})
