"""Register fused_matmul as a PyTorch operator, with its gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from labs_helpers.compile.operators import register_autocast
from labs_helpers.gemm.plan import check_operands, plan


@torch.library.custom_op("tile_to_cluster::fused_matmul", mutates_args=())
def fused_matmul(a: Tensor, b: Tensor, c: Tensor, tf32: bool = False) -> Tensor:
    """Compute ReLU(A·B + C), with operands, result and errors of the public function but without a configuration."""
    return plan(a, b, c).launch(a, b, c, tf32)


@fused_matmul.register_fake
def _fake(a: Tensor, b: Tensor, c: Tensor, tf32: bool = False) -> Tensor:
    M, N, _ = check_operands(a, b, c)
    return a.new_empty(M, N)


def save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Save A, B and D for `gradients`; D is positive where the ReLU passes its gradient on."""
    ctx.save_for_backward(inputs[0], inputs[1], output)


def gradients(ctx: Any, dd: Tensor) -> tuple[Tensor | None, ...]:
    """Return (dA, dB, dC), and None for tf32. torch.matmul computes the products, under PyTorch's TF32 setting."""
    a, b, d = ctx.saved_tensors
    needs_a, needs_b, _, *others = ctx.needs_input_grad
    dc = torch.ops.aten.threshold_backward(dd, d, 0)  # the ReLU's gradient: dD where D > 0
    return dc @ b.mT if needs_a else None, a.mT @ dc if needs_b else None, dc, *(None for _ in others)


fused_matmul.register_autograd(gradients, setup_context=save)
register_autocast(fused_matmul, operands=3)


@register_flop_formula(torch.ops.tile_to_cluster.fused_matmul)
def _flops(a: torch.Size, b: torch.Size, *others: Any, **keywords: Any) -> int:
    return 2 * a[0] * a[1] * b[1]
