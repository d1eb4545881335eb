"""The public functions: softmax(scale · q·kᵀ)·v without an Lq × Lk matrix in memory, and its gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from labs_helpers.attention import operator
from labs_helpers.attention.operands import check_operands, score_scale
from labs_helpers.attention.plan import plan, plan_backward
from labs_helpers.compile.operators import autocast, seen_by_torch


def flash_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False, scale: float | None = None) -> Tensor:
    """Compute softmax(scale · q·kᵀ)·v, differentiable in q, k and v, with memory linear in the lengths.

    q: (B, H, Lq, D), k and v: (B, Hkv, Lk, D), with any lengths ≥ 1, D from 16 to 128, and H a multiple of Hkv (query
    head h reads K/V head h // (H // Hkv)). float16, bfloat16 or float32, on one device, with any strides.
    causal: query i sees the keys j ≤ i + Lk − Lq. The diagonal starts from the bottom right corner, so the last query
    sees every key, as in a decoder with a key cache. FlashAttention does the same since version 2.1;
    `scaled_dot_product_attention(is_causal=True)` starts from the top left. A query that sees no key gets 0.
    scale: 1/sqrt(D) by default.
    Returns o, like q. Under autocast, q, k and v are cast to its dtype, as in `scaled_dot_product_attention`.
    `plan(q, k, v, causal)` tells which kernel runs, and why.

    Raises TypeError for an operand that is not a tensor, for mixed or unsupported dtypes and for a scale that is not a
    number, and ValueError for wrong shapes, head dims or devices and for a scale that is not finite. Each error names
    its argument.
    """
    q, k, v = autocast(q, k, v)
    if seen_by_torch(q, k, v):
        check_operands(q, k, v, kernels=False)  # the operator checks the rest, which depends on the machine
        return operator.attention_forward(q, k, v, causal, score_scale(scale, q.shape[-1]))[0]
    if _recorded(q, k, v):
        return _FlashAttention.apply(q, k, v, causal, scale)
    return attention_forward(q, k, v, causal, scale)[0]


def _recorded(*operands: Tensor) -> bool:
    """Return whether a derivative may be requested; only then is an autograd.Function worth its host time.

    The Function costs as much host time as the launch. It raises an error for torch.func and forward mode.
    """
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return True
    return torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in operands)


def attention_forward(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Return (o, lse), not differentiable; operands and errors are those of flash_attention.

    o is flash_attention's result. lse is the log-sum-exp of each row's scores, (B, H, Lq) in float32, a natural
    logarithm, and −inf for a query that sees no key.

    Dao, FlashAttention-2, 2023, algorithm 1.
    """
    chosen = plan(q, k, v, causal)
    return chosen.forward(q, k, v, causal, score_scale(scale, q.shape[-1]))


def attention_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    do: Tensor,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (dq, dk, dv), contiguous, with the shapes and dtypes of q, k and v.

    o, lse: from attention_forward on the same operands. do: the gradient of o, with any strides. dk and dv are summed
    over the query heads that share a K/V head. Under `torch.use_deterministic_algorithms(True)` the result has the
    same bits every time. Raises flash_attention's errors, also for o, lse and do.

    Dao, FlashAttention-2, 2023, algorithm 2.
    """
    chosen = plan_backward(q, k, v, o, lse, do, causal)
    return chosen.backward(q, k, v, o, lse, do, causal, score_scale(scale, q.shape[-1]))


class _FlashAttention(torch.autograd.Function):
    """Save q, k, v, o and lse, whose memory is linear in the length."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float | None) -> Tensor:
        chosen = plan(q, k, v, causal)
        ctx.causal, ctx.scale = causal, score_scale(scale, q.shape[-1])
        o, lse = chosen.forward(q, k, v, causal, ctx.scale)
        ctx.save_for_backward(q, k, v, o, lse)
        return o

    @staticmethod
    def backward(ctx: Any, do: Tensor) -> tuple[Tensor | None, ...]:
        # once_differentiable costs time, and is needed only if autograd records the backward pass.
        return _gradients_once(ctx, do) if torch.is_grad_enabled() else _gradients(ctx, do)


def _gradients(ctx: Any, do: Tensor) -> tuple[Tensor | None, ...]:
    if seen_by_torch(do):
        return operator.gradients(ctx, do)
    q, k, v, o, lse = ctx.saved_tensors
    chosen = plan_backward(q, k, v, o, lse, do, ctx.causal)
    # Autograd drops a gradient that is not needed.
    return *chosen.backward(q, k, v, o, lse, do, ctx.causal, ctx.scale, ctx.needs_input_grad[:3]), None, None


_gradients_once = torch.autograd.function.once_differentiable(_gradients)
