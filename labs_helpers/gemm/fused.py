"""Compute D = ReLU(A·B + C) in one kernel: the public function."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labs_helpers.compile.operators import autocast, seen_by_torch
from labs_helpers.gemm import operator
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.kernels.hopper import HopperConfig
from labs_helpers.gemm.kernels.split_k import SplitConfig
from labs_helpers.gemm.plan import Plan, plan


def fused_matmul(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    tf32: bool = False,
    config: Config | HopperConfig | SplitConfig | None = None,
) -> Tensor:
    """Compute ReLU(A·B + C) in one kernel, accumulated in float32 and rounded once; differentiable in a, b and c.

    a: (M, K), b: (K, N), c: (M, N), any sizes ≥ 1 and any strides (transposed, sliced, expanded), all on one device and
    of one dtype: float16, bfloat16 or float32. Returns (M, N), contiguous, of the same dtype. Under autocast, a, b and
    c are cast to its dtype, like the arguments of torch.addmm. tf32: multiply float32 on the tensor cores, with inputs
    rounded to 10 bits of mantissa (error near 1e-3 of the magnitudes instead of 1e-7). It does not affect other dtypes,
    or the gradients, which torch.matmul computes. config: replaces the plan's configuration. A HopperConfig selects the
    Hopper kernel, and a SplitConfig the kernel that splits K. `plan(a, b, c)` tells which kernel runs and why.

    Raises TypeError for an argument that is no tensor and for mixed or unsupported dtypes. Raises ValueError for shapes
    or devices that do not match, for a HopperConfig whose kernel cannot take the operands, and for a config under
    torch.compile or a dispatch mode.
    """
    a, b, c = autocast(a, b, c)
    if seen_by_torch(a, b, c):
        if config is not None:
            raise ValueError("config is for direct calls: under torch.compile or a dispatch mode the plan chooses")
        return operator.fused_matmul(a, b, c, tf32)
    chosen = plan(a, b, c)
    if config is not None:
        chosen = chosen.with_config(config)
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad or c.requires_grad):
        return _FusedMatmul.apply(a, b, c, tf32, chosen)
    return chosen.launch(a, b, c, tf32)


class _FusedMatmul(torch.autograd.Function):
    """Compute the gradient of the operator for direct calls."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, c: Tensor, tf32: bool, chosen: Plan) -> Tensor:
        d = chosen.launch(a, b, c, tf32)
        operator.save(ctx, (a, b), d)
        return d

    backward = staticmethod(operator.gradients)
