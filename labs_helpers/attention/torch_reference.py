"""The same attention in plain PyTorch: what the kernels are compared with. It builds the whole Lq × Lk matrix.

float64 is computed in float64, everything else in float32 and rounded at the end. Any device, any head dim.
"""

from __future__ import annotations

import torch

from labs_helpers.attention.operands import check_gradient_operands, check_operands, score_scale


def flash_attention(q, k, v, causal: bool = False, scale: float | None = None):
    """softmax(scale · q·kᵀ)·v, as `labs_helpers.attention.flash`; differentiable, saves q, k, v, o, lse."""
    return _FlashAttention.apply(q, k, v, causal, scale)


def attention_forward(q, k, v, causal: bool = False, scale: float | None = None):
    """(o, lse). q: (B, H, Lq, D); k, v: (B, Hkv, Lk, D); o like q, lse (B, H, Lq) in float32, of float64 in float64.

    Raises as `labs_helpers.attention.attention_forward`.
    """
    check_operands(q, k, v, kernels=False)
    s = _scores(q, k, causal, score_scale(scale, q.shape[-1]))
    lse = s.logsumexp(-1)
    o = _probabilities(s, lse) @ _for_each_query_head(v, q)
    return o.to(q.dtype), lse


def attention_backward(q, k, v, o, lse, do, causal: bool = False, scale: float | None = None):
    """(dq, dk, dv) by the formulas of the paper (Dao et al., FlashAttention, 2022, appendix B).

    o, lse: from attention_forward; do: the gradient of o. Raises as `labs_helpers.attention.attention_backward`.
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
    """scale · q·kᵀ, (B, H, Lq, Lk); with `causal`, query i sees the keys j ≤ i + Lk − Lq and the rest is −inf."""
    s = scale * _wide(q) @ _for_each_query_head(k, q).mT
    if causal:
        Lq, Lk = s.shape[-2:]
        visible = torch.ones(Lq, Lk, dtype=torch.bool, device=s.device).tril(Lk - Lq)
        s = s.masked_fill(~visible, -torch.inf)
    return s


def _probabilities(s, lse):
    # A row without a visible key has lse = −inf; with 0 in its place exp gives 0, not NaN.
    return torch.exp(s - lse.masked_fill(lse == -torch.inf, 0.0)[..., None])


def _wide(tensor):
    return tensor.to(torch.float64 if tensor.dtype == torch.float64 else torch.float32)


def _for_each_query_head(tensor, q):
    """k or v, (B, Hkv, Lk, D), repeated to (B, H, Lk, D): query head h reads head h // (H // Hkv)."""
    return _wide(tensor).repeat_interleave(q.shape[1] // tensor.shape[1], dim=1)


def _sum_over_group(gradient, tensor):
    Hkv = tensor.shape[1]
    return gradient.unflatten(1, (Hkv, -1)).sum(2).to(tensor.dtype)
