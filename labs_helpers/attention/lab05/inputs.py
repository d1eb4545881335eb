"""Random operands for the kernels of lab 05, with their lse and delta."""

from __future__ import annotations

import torch

from labs_helpers.attention import torch_reference


def backward_inputs(Lq: int, Lk: int, H: int = 1, D: int = 32, dtype=torch.float32, device="cpu") -> dict:
    """Return q, k, v, do, lse, delta and scale by name for causal attention, in query_gradient's order.

    The values are the same on every machine.
    """
    generator = torch.Generator().manual_seed(0)
    q, k, v, do = (torch.randn(1, H, L, D, generator=generator).to(device, dtype) for L in (Lq, Lk, Lk, Lq))
    o, lse = torch_reference.attention_forward(q, k, v, causal=True)
    return {"q": q, "k": k, "v": v, "do": do, "lse": lse, "delta": (o.float() * do.float()).sum(-1), "scale": D**-0.5}
