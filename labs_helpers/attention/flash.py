"""softmax(scale · q·kᵀ)·v without the Lq × Lk matrix, and its gradient: the public functions."""

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
    """softmax(scale · q·kᵀ)·v, differentiable in q, k and v; memory linear in the lengths.

    q: (B, H, Lq, D), k and v: (B, Hkv, Lk, D); any lengths ≥ 1, D from 16 to 128, H a multiple of Hkv (query head h
    reads K/V head h // (H // Hkv)); float16, bfloat16 or float32, one device, any strides. Returns o like q.
    causal: query i sees the keys j ≤ i + Lk − Lq. The diagonal starts from the bottom right corner: the last query
    sees every key, as a decoder needs that keeps the keys of earlier tokens. FlashAttention does so from 2.1 on;
    `scaled_dot_product_attention(is_causal=True)` starts from the top left. A query that sees no key gets 0.
    Under autocast q, k and v are cast to its dtype, as by `scaled_dot_product_attention`.
    scale: default 1/sqrt(D). `plan(q, k, v, causal)` says which kernel runs, and why.

    TypeError: not a tensor, mixed or unsupported dtypes, a scale that is no number. ValueError: shapes, head dim or
    devices that do not fit, a scale that is not finite. Each names its argument.
    """
    q, k, v = autocast(q, k, v)
    if seen_by_torch(q, k, v):
        check_operands(q, k, v, kernels=False)  # the rest, which asks for the machine, is for the operator to check
        return operator.attention_forward(q, k, v, causal, score_scale(scale, q.shape[-1]))[0]
    if _recorded(q, k, v):
        return _FlashAttention.apply(q, k, v, causal, scale)
    return attention_forward(q, k, v, causal, scale)[0]


def _recorded(*operands: Tensor) -> bool:
    """Whether somebody may want a derivative. An autograd.Function, which costs as much host time as the launch, says
    itself that torch.func and forward mode are not for it."""
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return True
    return torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in operands)


def attention_forward(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """(o, lse): flash_attention's result and the log-sum-exp of each row's scores, (B, H, Lq) in float32, natural
    logarithm, −inf for a query that sees no key. Operands and errors as flash_attention's; not differentiable.

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
    """(dq, dk, dv), contiguous, like q, k and v. o, lse: from attention_forward on the same operands; do: the gradient
    of o, any strides. dk and dv are summed over the query heads that share a K/V head.

    Under `torch.use_deterministic_algorithms(True)` the result is the same, bit for bit, every time. Errors as
    flash_attention's, and of o, lse and do in the same manner. Dao, FlashAttention-2, 2023, algorithm 2.
    """
    chosen = plan_backward(q, k, v, o, lse, do, causal)
    return chosen.backward(q, k, v, o, lse, do, causal, score_scale(scale, q.shape[-1]))


class _FlashAttention(torch.autograd.Function):
    """Saves q, k, v, o and lse, which grow with the length and not with its square."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float | None) -> Tensor:
        chosen = plan(q, k, v, causal)
        ctx.causal, ctx.scale = causal, score_scale(scale, q.shape[-1])
        o, lse = chosen.forward(q, k, v, causal, ctx.scale)
        ctx.save_for_backward(q, k, v, o, lse)
        return o

    @staticmethod
    def backward(ctx: Any, do: Tensor) -> tuple[Tensor | None, ...]:
        # Where nobody records the backward pass there is nothing to refuse, and no time to lose to that.
        return _gradients_once(ctx, do) if torch.is_grad_enabled() else _gradients(ctx, do)


def _gradients(ctx: Any, do: Tensor) -> tuple[Tensor | None, ...]:
    if seen_by_torch(do):
        return operator.gradients(ctx, do)
    q, k, v, o, lse = ctx.saved_tensors
    chosen = plan_backward(q, k, v, o, lse, do, ctx.causal)
    # What is made without being needed goes nowhere: the engine has no edge for it.
    return *chosen.backward(q, k, v, o, lse, do, ctx.causal, ctx.scale, ctx.needs_input_grad[:3]), None, None


_gradients_once = torch.autograd.function.once_differentiable(_gradients)
