"""The compile report of the kernels that read quantized weights, for every target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import torch

from labs_helpers.compile.ahead_of_time import TARGETS
from labs_helpers.compile.launches import record_launches
from labs_helpers.compile.report import Build, compile_report
from labs_helpers.measure.machine import this_machine
from labs_helpers.quantization.kernels.chips import has_ptx
from labs_helpers.quantization.kernels.few_rows import Weight, few_rows, few_rows_config
from labs_helpers.quantization.kernels.many_rows import dequantized, fused_rows, rounded_rows, table_for
from labs_helpers.quantization.kernels.round_rows import round_rows
from labs_helpers.quantization.weights import Fp8Weight, Int4Weight, Int8Weight, PairedInt4Weight

WITH_FLOAT8 = ("sm_90", "sm_100")
FORMATS = ("16 bits", "int8", "int4", "fp8")


def compile_everywhere(targets: Iterable[str] = tuple(TARGETS), formats: Iterable[str] = FORMATS):
    """Return the compile report of every kernel, with all configurations of the target, for 512 × 1024 weights.

    See `compile.report.compile_report`; the column format is added, such as 'int8', 'int8 × int8' for 8-bit x too, or
    'SwiGLU of int8'. x is bfloat16, on sm_75 float16. Targets without float8 have no rows for fp8. Raises ValueError
    for an unknown target, and CompileError, which names kernel and target, if a build fails.
    """
    return compile_report(build for target in targets for format in list(formats) for build in _builds(target, format))


def _builds(target: str, format: str) -> Iterator[Build]:
    if target not in TARGETS:
        raise ValueError(f"target {target!r} is not one of {', '.join(TARGETS)}")
    if format == "fp8" and target not in WITH_FLOAT8:
        return
    dtype = torch.float16 if target == "sm_75" else torch.bfloat16
    w, x = (torch.zeros(rows, 1024, device=this_machine().device, dtype=dtype) for rows in (512, 64))
    weight: Weight = w
    if format == "int4":
        weight = PairedInt4Weight.of(Int4Weight.quantize(w))
    elif format != "16 bits":
        weight = (Int8Weight if format == "int8" else Fp8Weight).quantize(w)
    with record_launches(run=False) as launches:
        for M, up in product((1, 16, 64), (None, weight)):
            config = few_rows_config(M, 512, weight.nbytes / w.numel(), up is not None, target, 132)
            few_rows(x[:M], weight, norm=w[0], up=up, config=config)
        if not isinstance(weight, torch.Tensor):
            _many_rows(x, weight, target)
    for launch in launches:
        if "PTX" in launch.arguments:
            launch.arguments["PTX"] = has_ptx(target)
        name = f"{format} × {format}" if launch.arguments.get("ROUNDED", launch.name == "round_rows_kernel") else format
        name = f"SwiGLU of {name}" if launch.arguments.get("SWIGLU") else name
        yield Build(launch.name, launch, target, {"format": name})


def _many_rows(x: torch.Tensor, weight: Int8Weight | Fp8Weight | PairedInt4Weight, target: str) -> None:
    dequantized(weight, x.dtype)
    for config in table_for(False, target):
        fused_rows(x, weight, config)
    if not isinstance(weight, PairedInt4Weight):
        codes, scale = round_rows(x, weight.q.dtype)
        for config in table_for(True, target):
            rounded_rows(codes, scale, weight, x.dtype, config)
