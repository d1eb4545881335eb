"""D = ReLU(A·B + C) in one kernel: the public function."""

from __future__ import annotations

from torch import Tensor

from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.kernels.hopper import HopperConfig
from labs_helpers.gemm.plan import plan


def fused_matmul(
    a: Tensor, b: Tensor, c: Tensor, *, tf32: bool = False, config: Config | HopperConfig | None = None
) -> Tensor:
    """ReLU(A·B + C) in one kernel, accumulated in float32 and rounded once.

    a: (M, K), b: (K, N), c: (M, N), one dtype of float16, bfloat16, float32, one device, any sizes ≥ 1, any
    strides (transposed, sliced, expanded). Returns (M, N), contiguous, of the same dtype.
    tf32: multiply float32 on the tensor cores, with inputs rounded to 10 bits of mantissa (error near 1e-3 of the
    magnitudes instead of 1e-7); without effect on other dtypes. config: this one instead of the plan's; a
    HopperConfig asks for the Hopper kernel. `plan(a, b, c)` says which kernel runs, and why.

    TypeError: not a tensor, mixed or unsupported dtypes. ValueError: shapes or devices that do not fit, or a
    HopperConfig for operands that its kernel cannot take.
    """
    chosen = plan(a, b, c)
    if config is not None:
        chosen = chosen.with_config(config)
    return chosen.launch(a, b, c, tf32)
