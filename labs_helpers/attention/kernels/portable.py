"""Launch the portable kernels, for any architecture and any strides and head dims from 16 to 128."""

from __future__ import annotations

import math

import torch
import triton

from labs_helpers.attention.configs import Config, default_config
from labs_helpers.attention.kernels.portable_backward import (
    delta_kernel,
    key_value_gradients_kernel,
    query_gradient_kernel,
)
from labs_helpers.attention.kernels.portable_forward import attention_forward_kernel
from labs_helpers.measure.machine import this_machine

LOG2_E = math.log2(math.e)


def forward(q, k, v, causal: bool, scale: float, config: Config | None = None):
    """Return (o, lse) for valid operands: o, (B, H, Lq, D), contiguous, and lse, (B, H, Lq), in float32."""
    if scale < 0:
        q, scale = -q, -scale  # gives the same scores; the kernel takes the maximum before it scales
    q, k, v = within_tiles(q, k, v)
    (B, H, Lq, D), (Lk, Hkv) = q.shape, (k.shape[2], k.shape[1])
    config = config or _config("forward", q)
    o = torch.empty((B, H, Lq, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, Lq), dtype=torch.float32, device=q.device)
    attention_forward_kernel[(B * H * triton.cdiv(Lq, config.BLOCK_M),)](
        q,
        k,
        v,
        o,
        lse,
        H,
        Lq,
        Lk,
        scale * LOG2_E,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        GROUP=H // Hkv,
        D=D,
        CAUSAL=causal,
        PRECISION="ieee",
        BLOCK_D=block_d(D),
        **config.keywords(),
    )
    return o, lse


def backward(
    q,
    k,
    v,
    o,
    lse,
    do,
    causal: bool,
    scale: float,
    needs=(True, True, True),
    key_value_config: Config | None = None,
    query_config: Config | None = None,
):
    """Return contiguous (dq, dk, dv) for valid operands, with None for gradients that `needs` excludes."""
    q, k, v, o, do = within_tiles(q, k, v, o, do)
    lse = lse.contiguous()
    (B, H, Lq, D), (Lk, Hkv) = q.shape, (k.shape[2], k.shape[1])
    delta = torch.empty((B, H, Lq), dtype=torch.float32, device=q.device)
    delta_kernel[(B * H * triton.cdiv(Lq, 64),)](
        o, do, delta, H, Lq, *o.stride(), *do.stride(), D=D, BLOCK_D=block_d(D), BLOCK_M=64
    )
    strides = (*q.stride(), *k.stride(), *v.stride(), *do.stride())
    constants = dict(GROUP=H // Hkv, D=D, CAUSAL=causal, PRECISION="ieee", BLOCK_D=block_d(D))
    dq = dk = dv = None
    if needs[1] or needs[2]:
        config = key_value_config or _config("key_value_gradients", q)
        dk, dv = (torch.empty((B, Hkv, Lk, D), dtype=q.dtype, device=q.device) for _ in range(2))
        key_value_gradients_kernel[(B * Hkv * triton.cdiv(Lk, config.BLOCK_N),)](
            q,
            k,
            v,
            do,
            lse,
            delta,
            dk,
            dv,
            Hkv,
            Lq,
            Lk,
            scale,
            scale * LOG2_E,
            *strides,
            **constants,
            **config.keywords(),
        )
    if needs[0]:
        config = query_config or _config("query_gradient", q)
        dq = torch.empty((B, H, Lq, D), dtype=q.dtype, device=q.device)
        query_gradient_kernel[(B * H * triton.cdiv(Lq, config.BLOCK_M),)](
            q, k, v, do, lse, delta, dq, H, Lq, Lk, scale, scale * LOG2_E, *strides, **constants, **config.keywords()
        )
    return dq, dk if needs[1] else None, dv if needs[2] else None


def block_d(D: int) -> int:
    """Return the width of a tile for head dim D: the next power of two, at least 16."""
    return max(16, 1 << (D - 1).bit_length())


def _config(direction: str, q) -> Config:
    return default_config(direction, q.shape[-1], q.dtype, this_machine().architecture)


def within_tiles(*tensors):
    """Return the tensors, but copy a tensor whose strides are so large that an offset in a tile would need 64 bits."""
    return [
        t if max(t.stride(2), t.stride(3)) < 2**23 else t.clone(memory_format=torch.contiguous_format) for t in tensors
    ]
