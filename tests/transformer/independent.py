"""The same decoder in an independent implementation: PyTorch's own norm and attention, rotation by complex numbers."""

import dataclasses

import torch
import torch.nn.functional as F

from labs_helpers.transformer import SIZES

# Grouped heads, four pairs to rotate, and an epsilon that shows.
GROUPED = dataclasses.replace(
    SIZES["tiny"], vocabulary=60, width=48, heads=6, kv_heads=2, hidden=80, context=40, norm_eps=1e-2, tied=False
)


def randomised(model, seed=0):
    """The model with every weight drawn anew and large, norms included: no part of it is the identity or 0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            spread = 0.3 if parameter.ndim == 1 else parameter.shape[-1] ** -0.5
            parameter.copy_(spread * torch.randn(parameter.shape, generator=generator) + (parameter.ndim == 1))
    return model


def rotated(x, theta):
    """(…, L, D): each pair (x[i], x[i + D/2]) as a complex number, times e^(i · position · theta^(−2i/D))."""
    L, D = x.shape[-2:]
    pairs = torch.complex(*x.double().chunk(2, dim=-1))
    frequency = torch.tensor([theta ** (-2 * i / D) for i in range(D // 2)], dtype=torch.float64)
    turned = pairs * torch.polar(torch.ones(L, D // 2, dtype=torch.float64), torch.outer(torch.arange(L), frequency))
    return torch.cat([turned.real, turned.imag], dim=-1).to(x.dtype)


def logits(config, weights, tokens):
    """(B, L, V) from a Transformer's state_dict."""

    def norm(x, name):
        return F.rms_norm(x, (config.width,), weights[name], config.norm_eps)

    def heads(x, name):
        return (x @ weights[name].T).reshape(*x.shape[:2], -1, config.head_dim).movedim(2, 1)

    x = weights["embedding.weight"][tokens]
    for layer in range(config.layers):
        at = f"blocks.{layer}"
        h = norm(x, f"{at}.attention_norm.weight")
        q, k, v = (heads(h, f"{at}.attention.{name}.weight") for name in ("wq", "wk", "wv"))
        q, k = rotated(q, config.rope_theta), rotated(k, config.rope_theta)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + o.movedim(1, 2).reshape(x.shape) @ weights[f"{at}.attention.wo.weight"].T
        h = norm(x, f"{at}.mlp_norm.weight")
        gate, up, down = (weights[f"{at}.mlp.{name}.weight"].T for name in ("gate", "up", "down"))
        x = x + (F.silu(h @ gate) * (h @ up)) @ down
    return norm(x, "norm.weight") @ weights["embedding.weight" if config.tied else "output.weight"].T
