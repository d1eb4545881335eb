"""The operations of a decoding step in plain PyTorch, for any device and dtype.

A weight is a tensor (N, K), or an object with such a `shape` whose `dequantize(dtype)` returns the tensor. x has few
rows, (B, K).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from labs_helpers.transformer.model import RMSNorm, rotate

Weight = Any  # a Tensor, or a quantised weight


def dense(weight: Weight, dtype: torch.dtype) -> Tensor:
    """Return a weight as a tensor (N, K) of this dtype; that of a quantised one is made for this product."""
    return weight if isinstance(weight, Tensor) else weight.dequantize(dtype)


def norm_product(x: Tensor, norm: RMSNorm, weight: Weight) -> Tensor:
    return F.linear(norm(x), dense(weight, x.dtype))


def product_add(x: Tensor, weight: Weight, residual: Tensor) -> Tensor:
    return residual + F.linear(x, dense(weight, x.dtype))


def norm_swiglu(x: Tensor, norm: RMSNorm, gate: Weight, up: Weight) -> Tensor:
    x = norm(x)
    return F.silu(F.linear(x, dense(gate, x.dtype))) * F.linear(x, dense(up, x.dtype))


def attend_plain(qkv: Tensor, cos: Tensor, sin: Tensor, lengths: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return o, (B, H · D), of one new position per sequence; store its rotated k and its v in the caches.

    qkv: (B, (H + 2 · Hkv) · D). cos, sin: (positions, D/2). lengths: (B,), the used positions of each sequence. k, v:
    (B, Hkv, capacity, D). It reads the whole caches, and masks what is not in use.
    """
    B, Hkv, capacity, D = k.shape
    new = qkv.view(B, -1, D)
    q, new_k, new_v = new.split([new.shape[1] - 2 * Hkv, Hkv, Hkv], dim=1)
    at = lengths.long()
    q, new_k = (rotate(x, cos[at][:, None], sin[at][:, None]) for x in (q, new_k))
    sequence = torch.arange(B, device=at.device)
    k[sequence, :, at], v[sequence, :, at] = new_k, new_v
    seen = torch.arange(capacity, device=at.device) <= at[:, None]
    o = F.scaled_dot_product_attention(q[:, :, None], k, v, attn_mask=seen[:, None, None], enable_gqa=q.shape[1] != Hkv)
    return o.flatten(1)
