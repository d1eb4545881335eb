"""Three implementations of causal attention: functions (q, k, v) → o for a Transformer.

q: (B, H, L, D), k and v: (B, Hkv, L, D), H a multiple of Hkv; query head h reads K/V head h // (H // Hkv). o has q's
shape.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

AttentionFunction = Callable[[Tensor, Tensor, Tensor], Tensor]


def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute softmax(q·kᵀ / √D)·v with several copies of the L × L scores in memory; the softmax runs in float32."""
    group, L = q.shape[1] // k.shape[1], q.shape[2]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    future = torch.ones(L, L, dtype=torch.bool, device=q.device).triu(1)
    scores = q @ k.mT * q.shape[-1] ** -0.5
    scores = scores.masked_fill(future, -torch.inf)
    probabilities = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return probabilities @ v


def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Call PyTorch's `scaled_dot_product_attention`, which chooses among its kernels."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])


def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Call the course's `flash_attention`; D from 16 to 128. Call `prepare_triton()` once before."""
    from labs_helpers.attention import flash_attention  # imports Triton, which the others do not need

    return flash_attention(q, k, v, causal=True)


ATTENTIONS: dict[str, AttentionFunction] = {"plain": plain, "sdpa": sdpa, "flash": flash}
