"""Race products with many rows and quantized weights: microseconds, from CUDA graphs, with cold weights.

    python -m labs_helpers.quantization.many_rows_study --seconds 240          # our ways, and PyTorch's products
    python -m labs_helpers.quantization.many_rows_study --seconds 480 --tune   # other configurations as well

'fused' dequantizes the weight inside of the product, and 'buffer' before it. Formats like 'int8 × int8' have x in
8 bits too: 'rounded' takes x in bfloat16 and rounds it, and the other products take x rounded already, as PyTorch's do.
`_int_mm` leaves out the scales, and returns int32.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from labs_helpers.gemm.configs import Config
from labs_helpers.launch import program
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.study import Study
from labs_helpers.quantization.few_rows_study import COLD, WRONG, Race, Run, race_all, timed
from labs_helpers.quantization.weights import Fp8Weight, Int4Weight, Int8Weight, PairedInt4Weight

STUDY = Study("quantization-many-rows", "python -m labs_helpers.quantization.many_rows_study")
load = STUDY.load
ROWS = (64, 128, 256, 512, 1024, 2048, 4096)
TUNED = 6  # configurations of the Hopper kernel per shape, those with the least predicted times
WRONG_FLOAT8 = 2 * WRONG  # both operands are rounded
Way = tuple[str, str, Run, Tensor, list[Any]]  # format, name, product, what it should be, configurations to try


def weights(w: Tensor) -> dict[str, Any]:
    """Return the weight in every format, by the format's name."""
    int4 = PairedInt4Weight.of(Int4Weight.quantize(w))
    return {"bf16": w, "int8": Int8Weight.quantize(w), "int4": int4, "fp8": Fp8Weight.quantize(w)}


def ways(x: Tensor, format: str, stored: Any, tune: bool) -> Iterator[Way]:
    """Yield the products of x (M, K) and a weight in one format. Those that take x in 8 bits have closed over it."""
    from labs_helpers.quantization.kernels.many_rows import fused_rows, rounded_rows, table_for
    from labs_helpers.quantization.kernels.round_rows import round_rows
    from labs_helpers.quantization.plan import many_rows, rounded_product, scaled_product

    architecture = this_machine().architecture
    exact = x.double() @ (stored if format == "bf16" else stored.dequantize()).double().T
    if format == "bf16":
        yield format, "F.linear", F.linear, exact, []
        return
    others = others_of(table_for(False, architecture)) if tune and architecture else []
    yield format, "fused", lambda x, p, **c: fused_rows(x, p, **c), exact, others
    yield format, "buffer", lambda x, p: many_rows(x, p, "buffer"), exact, []
    if format == "int4":
        return
    codes, scale = round_rows(x, stored.q.dtype)
    both, dtype = f"{format} × {format}", x.dtype
    yield both, "rounded", rounded_product, exact, []
    yield both, "product", lambda _, p: scaled_product(codes, scale, p, dtype), exact, []
    if tune:
        yield from tuned_ways(both, codes, scale, stored, dtype, exact)
    others = others_of(table_for(True, architecture)) if tune and architecture else []
    yield both, "portable", lambda _, p, **c: rounded_rows(codes, scale, p, dtype, **c), exact, others
    if format == "int8":
        sums = codes.double() @ stored.q.double().T
        yield both, "_int_mm", lambda _, p: torch._int_mm(codes, p.q.T), sums, []
        return
    yield both, "portable, exact sums", lambda _, p: rounded_rows(codes, scale, p, dtype, fast=False), exact, []
    for fast in (True, False):

        def scaled_mm(_: Tensor, p: Fp8Weight, fast: bool = fast) -> Tensor:
            return torch._scaled_mm(
                codes, p.q.T, scale[:, None], p.scale[None, :], out_dtype=dtype, use_fast_accum=fast
            )

        yield both, f"_scaled_mm, {'fast' if fast else 'exact'} sums", scaled_mm, exact, []


def others_of(configs: tuple[Config, ...]) -> list[Config]:
    """Return these configurations, and each with other numbers of stages and warps."""
    changed = [replace(c, num_stages=c.num_stages + more) for c in configs for more in (-1, 1)]
    return [*configs, *changed, *(replace(c, num_warps=12 - c.num_warps) for c in configs)]


def tuned_ways(
    both: str, codes: Tensor, scale: Tensor, stored: Any, dtype: torch.dtype, exact: Tensor
) -> Iterator[Way]:
    """Yield the Hopper kernel with other configurations, if it takes the operands."""
    from labs_helpers.gemm.scaled import promising, scaled_matmul, why_not

    if why_not(codes, stored.q, dtype, this_machine().architecture) is None:
        (M, K), N = codes.shape, stored.shape[0]

        def tuned(_: Tensor, p: Any, config: Any) -> Tensor:
            return scaled_matmul(codes, p.q, scale, p.scale, dtype, config)

        yield both, "hopper", tuned, exact, promising(M, N, K, TUNED)


def race_shape(K: int, N: int, tune: bool, until: float) -> Iterator[dict[str, Any]]:
    """Yield one record per format, number of rows, product and configuration at one shape, until a time."""
    w = torch.randn(N, K, device="cuda", dtype=torch.bfloat16) / K**0.5
    for format, stored in weights(w).items():
        copies = [stored, *(deepcopy(stored) for _ in range(int(COLD // stored.nbytes)))]
        for M in ROWS:
            if time.monotonic() > until:
                return
            x = torch.randn(M, K, device="cuda", dtype=torch.bfloat16)
            try:
                for of, name, run, exact, configs in ways(x, format, stored, tune):
                    about = {"K": K, "N": N, "M": M, "format": of, "name": name, "copies": len(copies)}
                    wrong = WRONG_FLOAT8 if of == "fp8 × fp8" else WRONG
                    for config in [*([] if name == "hopper" else [None]), *configs]:
                        call = run if config is None else (lambda x, p, c=config, r=run: r(x, p, config=c))
                        yield timed(about | {"config": str(config or "default")}, call, x, copies, exact, wrong)
            except RuntimeError as failure:  # this chip has no float8
                yield {"K": K, "N": N, "M": M, "format": format, "name": "", "error": str(failure)}


def main(arguments: list[str] | None = None) -> None:
    race: Race = race_shape
    race_all(STUDY, __doc__, race, arguments)


if __name__ == "__main__":
    program.run(main)
