"""flash_attention as PyTorch operators, one per pass, for torch.compile, export and dispatch modes.

An operator makes its plan at run time. It depends on strides, alignment, the GPU and use_deterministic_algorithms, as
in a direct call, and not on the time at which a graph was captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from labs_helpers.attention.operands import check_gradient_operands, check_operands, score_scale
from labs_helpers.attention.plan import plan, plan_backward
from labs_helpers.compile.operators import register_autocast


@torch.library.custom_op("tile_to_cluster::attention_forward", mutates_args=())
def attention_forward(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Return (o, lse) as `flash.attention_forward` does, with the same operands and errors; o is differentiable."""
    return plan(q, k, v, causal).forward(q, k, v, causal, score_scale(scale, q.shape[-1]))


@torch.library.custom_op("tile_to_cluster::attention_backward", mutates_args=())
def attention_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    do: Tensor,
    causal: bool,
    scale: float | None,
    needs: Sequence[bool],
) -> list[Tensor]:
    """Return those of [dq, dk, dv] that `needs`, three booleans, selects; operands as in `flash.attention_backward`."""
    chosen = plan_backward(q, k, v, o, lse, do, causal)
    gradients = chosen.backward(q, k, v, o, lse, do, causal, score_scale(scale, q.shape[-1]), needs)
    return [g for g, needed in zip(gradients, needs, strict=True) if needed]


@attention_forward.register_fake
def _fake_forward(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    check_operands(q, k, v)
    score_scale(scale, q.shape[-1])
    return q.new_empty(q.shape), q.new_empty(q.shape[:3], dtype=torch.float32)


@attention_backward.register_fake
def _fake_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    do: Tensor,
    causal: bool,
    scale: float | None,
    needs: Sequence[bool],
) -> list[Tensor]:
    check_operands(q, k, v)
    check_gradient_operands(q, o, lse, do)
    return [x.new_empty(x.shape) for x, needed in zip((q, k, v), needs, strict=True) if needed]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(q, k, v, *output)
    ctx.mark_non_differentiable(output[1])


def gradients(ctx: Any, do: Tensor, *others: Tensor) -> tuple[Tensor | None, ...]:
    """Return (dq, dk, dv) with None where no gradient is needed, and None for causal and scale."""
    needs = ctx.needs_input_grad[:3]
    made = iter(attention_backward(*ctx.saved_tensors, do, ctx.causal, ctx.scale, needs))
    return *(next(made) if needed else None for needed in needs), None, None


attention_forward.register_autograd(gradients, setup_context=_save)
register_autocast(attention_forward, operands=3)


# PyTorch counts scaled_dot_product_attention in the same way: all scores, although a mask leaves out half of them.
@register_flop_formula(torch.ops.tile_to_cluster.attention_forward)
def _flops_forward(q: torch.Size, k: torch.Size, *others: Any, **keywords: Any) -> int:
    return 2 * 2 * q.numel() * k[2]


@register_flop_formula(torch.ops.tile_to_cluster.attention_backward)
def _flops_backward(q: torch.Size, k: torch.Size, *others: Any, **keywords: Any) -> int:
    return 5 * 2 * q.numel() * k[2]  # the scores again, dV, dP, dQ and dK
