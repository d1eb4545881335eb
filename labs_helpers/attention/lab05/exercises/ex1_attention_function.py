"""Lab 05, exercise 1: the backward pass of attention in plain PyTorch, which keeps no Lq × Lk matrix."""

import torch


def scores(q, k, scale, causal):
    """Return scale · Q·Kᵀ, (B, H, Lq, Lk), with −inf where a query does not see a key."""
    s = scale * q @ k.mT
    if causal:  # query i sees the keys j ≤ i + Lk − Lq; the last query sees all keys
        Lq, Lk = s.shape[-2:]
        seen = torch.ones(Lq, Lk, dtype=torch.bool, device=q.device).tril(Lk - Lq)
        s = s.masked_fill(~seen, -torch.inf)
    return s


def attention_function(q, k, v, causal=False):
    """Compute softmax(scale · Q·Kᵀ)·V, with scale = 1/√D, and define its backward pass.

    q: (B, H, Lq, D), k and v: (B, H, Lk, D), with Lq ≤ Lk, so that every query sees a key.
    Returns o, like q.
    """
    scale = q.shape[-1] ** -0.5

    class AttentionFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            s = scores(q, k, scale, causal)
            lse = s.logsumexp(-1)  # (B, H, Lq)
            o = torch.exp(s - lse[..., None]) @ v
            # 1. Call ctx.save_for_backward(…) with what backward needs, but no Lq × Lk matrix.
            ### BEGIN SOLUTION
            ctx.save_for_backward(q, k, v, o, lse)
            ### END SOLUTION
            return o

        @staticmethod
        def backward(ctx, do):
            # 2. Read ctx.saved_tensors, and recompute P from the scores and lse.
            # 3. Compute dV = Pᵀ·dO and dP = dO·Vᵀ.
            # 4. Go back through the softmax: delta = rowsum(o ∘ dO), dS = P ∘ (dP − delta).
            # 5. Go back through the scores, s = scale · Q·Kᵀ, to dQ and dK.
            ### BEGIN SOLUTION
            q, k, v, o, lse = ctx.saved_tensors
            p = torch.exp(scores(q, k, scale, causal) - lse[..., None])
            dv = p.mT @ do
            dp = do @ v.mT
            delta = (o * do).sum(-1, keepdim=True)
            ds = p * (dp - delta)
            dq = scale * ds @ k
            dk = scale * ds.mT @ q
            ### END SOLUTION
            return dq, dk, dv

    return AttentionFunction.apply(q, k, v)
