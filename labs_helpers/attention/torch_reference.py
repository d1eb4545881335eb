"""Attention in plain PyTorch with the whole Lq × Lk matrix, as a reference for the kernels.

float64 operands are computed in float64, all others in float32 and rounded at the end. Any device, any head dimension.
"""

from __future__ import annotations

import torch

from labs_helpers.attention.operands import check_gradient_operands, check_operands, score_scale


def flash_attention(q, k, v, causal: bool = False, scale: float | None = None):
    """Compute softmax(scale · q·kᵀ)·v like `labs_helpers.attention.flash`; differentiable, saves q, k, v, o and lse."""
    return _FlashAttention.apply(q, k, v, causal, scale)


def attention_forward(q, k, v, causal: bool = False, scale: float | None = None):
    """Return (o, lse): o like q, and lse, (B, H, Lq), in float64 for float64 operands, else in float32.

    q: (B, H, Lq, D); k, v: (B, Hkv, Lk, D). Raises the errors of `labs_helpers.attention.flash.attention_forward`.
    """
    check_operands(q, k, v, kernels=False)
    s = _scores(q, k, causal, score_scale(scale, q.shape[-1]))
    lse = s.logsumexp(-1)
    o = _probabilities(s, lse) @ _for_each_query_head(v, q)
    return o.to(q.dtype), lse


def attention_backward(q, k, v, o, lse, do, causal: bool = False, scale: float | None = None):
    """Return (dq, dk, dv) by the formulas of Dao et al., FlashAttention, 2022, appendix B.

    o, lse: from attention_forward. do: the gradient of o. Raises the errors of `flash.attention_backward`.
    """
    check_operands(q, k, v, kernels=False)
    check_gradient_operands(q, o, lse, do)
    scale = score_scale(scale, q.shape[-1])
    p = _probabilities(_scores(q, k, causal, scale), lse)
    do_, o_, q_ = (_wide(t) for t in (do, o, q))
    dv = p.mT @ do_
    dp = do_ @ _for_each_query_head(v, q).mT
    delta = (o_ * do_).sum(-1, keepdim=True)
    ds = p * (dp - delta)
    dq = scale * ds @ _for_each_query_head(k, q)
    dk = scale * ds.mT @ q_
    return dq.to(q.dtype), _sum_over_group(dk, k), _sum_over_group(dv, v)


class _FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, scale):
        o, lse = attention_forward(q, k, v, causal, scale)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.causal, ctx.scale = causal, scale
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do):
        return *attention_backward(*ctx.saved_tensors, do, ctx.causal, ctx.scale), None, None


def _scores(q, k, causal: bool, scale: float):
    """Return scale · q·kᵀ, (B, H, Lq, Lk); with `causal`, scores of keys j > i + Lk − Lq are −inf."""
    s = scale * _wide(q) @ _for_each_query_head(k, q).mT
    if causal:
        Lq, Lk = s.shape[-2:]
        visible = torch.ones(Lq, Lk, dtype=torch.bool, device=s.device).tril(Lk - Lq)
        s = s.masked_fill(~visible, -torch.inf)
    return s


def _probabilities(s, lse):
    # A row without a visible key has lse = −inf; replacing it by 0 makes exp return 0, not NaN.
    return torch.exp(s - lse.masked_fill(lse == -torch.inf, 0.0)[..., None])


def _wide(tensor):
    return tensor.to(torch.float64 if tensor.dtype == torch.float64 else torch.float32)


def _for_each_query_head(tensor, q):
    """Repeat k or v, (B, Hkv, Lk, D), to (B, H, Lk, D); query head h reads head h // (H // Hkv)."""
    return _wide(tensor).repeat_interleave(q.shape[1] // tensor.shape[1], dim=1)


def _sum_over_group(gradient, tensor):
    Hkv = tensor.shape[1]
    return gradient.unflatten(1, (Hkv, -1)).sum(2).to(tensor.dtype)
