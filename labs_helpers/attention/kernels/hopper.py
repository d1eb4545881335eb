"""Launch the Hopper kernels of attention: descriptors, configurations, and what they cannot take."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch

from labs_helpers.attention.kernels import portable
from labs_helpers.attention.kernels.hopper_backward_ends import prepare_kernel, round_kernel
from labs_helpers.measure.machine import this_machine

ROWS = 64  # rows of queries, backward of keys, a warpgroup
BACKWARD_BLOCK_M = 64  # queries a step
BACKWARD_BLOCK_N = 128  # keys a program: two warpgroups
MIB = 2**20


@dataclass(frozen=True)
class ForwardConfig:
    """CONSUMERS warpgroups of 64 query rows; BLOCK_N keys and STAGES buffers of K and V; BY_TURNS: a consumer starts
    its products only after the one before has started its own."""

    CONSUMERS: int
    BLOCK_N: int
    STAGES: int
    BY_TURNS: bool


def forward_config(D: int, Lk: int) -> ForwardConfig:
    """The fastest measured on an H200 (Triton 3.6.0, float16) at lengths of 1,024 to 16,384."""
    if D > 64:
        return ForwardConfig(CONSUMERS=2, BLOCK_N=128, STAGES=2, BY_TURNS=False)
    if Lk <= 1024:
        return ForwardConfig(CONSUMERS=2, BLOCK_N=128, STAGES=4, BY_TURNS=True)
    return ForwardConfig(CONSUMERS=3, BLOCK_N=128, STAGES=2, BY_TURNS=True)


def heads_in_l2(budget: float, bytes_a_head: int, heads: int) -> int:
    """How many heads are worked on together, for what they read to stay in the L2 cache."""
    return max(1, min(heads, int(budget) // bytes_a_head))


def why_not(q, k, v, architecture: str | None) -> str | None:
    """Why the Hopper kernels cannot take these valid operands on this architecture; None when they can."""
    if architecture != "sm_90":
        return f"the Hopper kernels need sm_90, this is {architecture or 'the interpreter'}"
    if q.dtype not in (torch.float16, torch.bfloat16):
        return f"the Hopper kernels multiply 16-bit floats, not {q.dtype}"
    if q.shape[-1] <= 32 or q.shape[-1] % 8:
        return f"head dim {q.shape[-1]}: the Hopper kernels take multiples of 8 from 40 to 128"
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if reason := unreadable(tensor):
            return f"{name}'s {reason}"
    if not gluon_fits():
        return f"the Hopper kernels' Gluon is that of Triton 3.6 and 3.7, here is {this_machine().triton}"
    return None


def unreadable(tensor) -> str | None:
    """Why TMA cannot read a 16-bit (B, H, L, D) tensor; None when it can."""
    *outer, last = tensor.stride()
    if last != 1:
        return f"head dim is not consecutive: strides {tensor.stride()}"
    if tensor.data_ptr() % 16 or any(stride <= 0 or stride * 2 % 16 for stride in outer):
        return f"rows do not start at multiples of 16 bytes, which TMA needs: strides {tensor.stride()}"
    return None


def gluon_fits() -> bool:
    """Whether this Triton has the Gluon that the kernels are written in; it is experimental, and differs in 3.9."""
    return (this_machine().triton or "").startswith(("3.6.", "3.7."))


def forward(q, k, v, causal: bool, scale: float, config: ForwardConfig | None = None):
    """(o, lse) by the Hopper kernel. Operands as `why_not` accepts them; o contiguous, lse float32 (B, H, Lq)."""
    if scale <= 0:
        return portable.forward(q, k, v, causal, scale)  # here the maximum is taken before the scale
    from labs_helpers.attention.kernels.hopper_forward import hopper_forward_kernel

    (B, H, Lq, D), (Hkv, Lk) = q.shape, k.shape[1:3]
    config = config or forward_config(D, Lk)
    o = torch.empty((B, H, Lq, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, Lq), dtype=torch.float32, device=q.device)
    counter = torch.zeros(1, dtype=torch.int32, device=q.device)
    tiles_m, block_d = -(-Lq // (config.CONSUMERS * ROWS)), _block_d(D)
    # All programs together read the K and V of a group. With a mask, a larger group is easier to share out evenly.
    head_group = heads_in_l2((48 if causal else 12) * MIB, Lk * block_d * 4, B * H)
    hopper_forward_kernel[(min(_multiprocessors(q.device.index), tiles_m * B * H),)](
        _blocks(q, ROWS, block_d),
        _blocks(k, config.BLOCK_N, block_d),
        _blocks(v, config.BLOCK_N, block_d),
        _blocks(o, ROWS, block_d),
        lse,
        counter,
        H,
        H // Hkv,
        Lq,
        Lk,
        tiles_m,
        B * H,
        head_group,
        scale * math.log2(math.e),
        config.CONSUMERS,
        config.STAGES,
        causal,
        config.BY_TURNS,
        num_warps=4,
    )
    return o, lse


def backward(q, k, v, o, lse, do, causal: bool, scale: float, needs=(True, True, True)):
    """(dq, dk, dv), contiguous, by the Hopper kernel, which makes all three whatever is needed. q, k and v as `why_not`
    accepts them.

    dQ is summed in float32 by atomic additions, whose order varies from run to run.
    """
    if scale <= 0:
        return portable.backward(q, k, v, o, lse, do, causal, scale)
    from labs_helpers.attention.kernels.hopper_backward import hopper_backward_kernel

    (B, H, Lq, D), (Hkv, Lk) = q.shape, k.shape[1:3]
    do = do.contiguous() if unreadable(do) else do
    block_d = _block_d(D)
    q_blocks, tiles_n = -(-Lq // BACKWARD_BLOCK_M), -(-Lk // BACKWARD_BLOCK_N)
    all_blocks = B * H * q_blocks
    sums = torch.empty((all_blocks * BACKWARD_BLOCK_M, block_d), dtype=torch.float32, device=q.device)
    stats = torch.empty((2 * all_blocks, BACKWARD_BLOCK_M), dtype=torch.float32, device=q.device)
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    prepare_kernel[(q_blocks, B * H)](
        o,
        do,
        lse.contiguous(),
        stats,
        sums,
        H,
        Lq,
        q_blocks,
        all_blocks,
        scale,
        *o.stride(),
        *do.stride(),
        D,
        BLOCK_M=BACKWARD_BLOCK_M,
        BLOCK_D=block_d,
    )
    # A group's q, dO and dQ, 8 bytes an element, are read and added to by all programs together.
    head_group = heads_in_l2(16 * MIB, H // Hkv * Lq * block_d * 8, B * Hkv)
    # K is cut into halves of its columns for dQ; a swizzle as wide as a half keeps each half whole.
    swizzle = min(128, block_d)
    hopper_backward_kernel[(tiles_n * B * Hkv,)](
        _blocks(q, BACKWARD_BLOCK_M, block_d),
        _blocks(do, BACKWARD_BLOCK_M, block_d),
        _descriptor(stats, (1, BACKWARD_BLOCK_M), 0),
        _blocks(k, ROWS, block_d, swizzle),
        _blocks(v, ROWS, block_d),
        _blocks(dk, ROWS, block_d),
        _blocks(dv, ROWS, block_d),
        _descriptor(sums, (BACKWARD_BLOCK_M, block_d // 2)),
        Hkv,
        H // Hkv,
        Lq,
        Lk,
        q_blocks,
        tiles_n,
        B * Hkv,
        head_group,
        all_blocks,
        scale * math.log2(math.e),
        scale,
        STAGES=2,
        CAUSAL=causal,
        num_warps=4,
    )
    round_kernel[(q_blocks, B * H)](sums, dq, H, Lq, q_blocks, scale, D, BLOCK_M=BACKWARD_BLOCK_M, BLOCK_D=block_d)
    return dq, dk, dv


def _block_d(D: int) -> int:
    return 64 if D <= 64 else 128


def _blocks(tensor, rows: int, block_d: int, swizzle: int | None = None):
    """The descriptor of a (B, H, L, D) tensor in blocks of `rows` × `block_d`; what sticks out is read as 0."""
    return _descriptor(tensor, (1, 1, rows, block_d), swizzle)


def _descriptor(tensor, block: tuple[int, ...], swizzle: int | None = None):
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    return TensorDescriptor(
        tensor, list(tensor.shape), list(tensor.stride()), list(block), _layout(block, tensor.dtype, swizzle)
    )


@functools.cache
def _layout(block: tuple[int, ...], dtype, swizzle: int | None):
    from triton.experimental.gluon import language as gl

    kinds = {torch.float16: gl.float16, torch.bfloat16: gl.bfloat16, torch.float32: gl.float32}
    if swizzle is None:
        return gl.NVMMASharedLayout.get_default_for(list(block), kinds[dtype])
    return gl.NVMMASharedLayout(
        swizzle_byte_width=swizzle, element_bitwidth=kinds[dtype].primitive_bitwidth, rank=len(block)
    )


@functools.cache
def _multiprocessors(device: int | None) -> int:
    return torch.cuda.get_device_properties(
        torch.cuda.current_device() if device is None else device
    ).multi_processor_count
