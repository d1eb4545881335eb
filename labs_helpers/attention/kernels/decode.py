"""Launch the decode kernels: up to 16 queries a head, any strides, and into how many parts the keys are split."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
import triton

from labs_helpers.attention.configs import family
from labs_helpers.attention.kernels import portable
from labs_helpers.attention.kernels.decode_kernels import decode_kernel, join_kernel
from labs_helpers.measure.machine import this_machine

MOST_QUERIES = 16
MOST_SPLITS = 128  # what one program of join_kernel holds in registers
MOST_ROWS = 64  # a tile's rows; more go to further programs, which find K and V in L2
FILL, JOIN = 2, 3  # what a program's start and the second kernel cost, in blocks of keys: to be measured


@dataclass(frozen=True)
class DecodeConfig:
    """BLOCK_N keys a step, num_warps and num_stages as in Config; `programs` of it that one SM runs at a time."""

    BLOCK_N: int
    num_warps: int
    num_stages: int
    programs: int


# Family → (head dim up to 64, up to 128) in 16-bit floats. Compiled, not measured: 64 KB and more of loads in flight
# an SM on sm_90, a single buffer on sm_75, which has no asynchronous copies.
CONFIGS = {
    "sm_75": (DecodeConfig(64, 4, 2, 3), DecodeConfig(32, 4, 2, 2)),
    "sm_80": (DecodeConfig(64, 4, 3, 3), DecodeConfig(32, 4, 3, 3)),
    "sm_90": (DecodeConfig(128, 4, 3, 2), DecodeConfig(64, 4, 3, 2)),
    "sm_100": (DecodeConfig(128, 4, 3, 2), DecodeConfig(64, 4, 3, 2)),
    "gfx942": (DecodeConfig(64, 4, 2, 2), DecodeConfig(32, 4, 2, 2)),
}
_INTERPRETED = DecodeConfig(64, 4, 1, 1)


def why(q) -> str | None:
    """Why these kernels take valid operands with this q; None where the others do. The one place of the rule."""
    if q.dtype in (torch.float16, torch.bfloat16) and q.shape[2] <= MOST_QUERIES:
        return f"{q.shape[2]} of at most {MOST_QUERIES} queries a head, in 16-bit floats: the keys are split instead"
    return None


def decode_config(D: int, architecture: str | None) -> DecodeConfig:
    """The configuration for a head dim and a GPU; None for the interpreter."""
    return _INTERPRETED if architecture is None else CONFIGS[family(architecture)][D > 64]


def choose_splits(programs: int, blocks: int, slots: int) -> int:
    """Into how many parts `blocks` blocks of keys are cut, where `programs` programs each would take them all and
    `slots` of them run at a time: that of the fewest steps, and of these the fewest parts.

    A part's program takes FILL + its blocks steps, a wave of `slots` programs as long as one of them, and the join of
    more than one part JOIN steps.
    """

    def steps(splits: int) -> int:
        waves = -(-programs * splits // slots)
        return waves * (FILL + -(-blocks // splits)) + JOIN * (splits > 1)

    best = min(range(1, min(blocks, MOST_SPLITS) + 1), key=lambda splits: (steps(splits), splits))
    return -(-blocks // -(-blocks // best))  # no part is empty


def forward(q, k, v, causal: bool, scale: float, config: DecodeConfig | None = None, splits: int | None = None):
    """(o, lse) of valid operands; o (B, H, Lq, D) contiguous, lse (B, H, Lq) float32.

    splits: at most so many parts of the keys, whole blocks each, and at most MOST_SPLITS; by default `choose_splits`.
    The parts are joined in one order: the result is the same, bit for bit, every time.
    """
    if scale < 0:
        q, scale = -q, -scale  # the same scores; the kernel takes the maximum before it scales
    k, v = portable.within_tiles(k, v)
    (B, H, Lq, D), (Hkv, Lk) = q.shape, k.shape[1:3]
    config = config or decode_config(D, this_machine().architecture)
    rows, block_d, blocks = H // Hkv * Lq, portable.block_d(D), -(-Lk // config.BLOCK_N)
    block_r = min(MOST_ROWS, max(16, triton.next_power_of_2(rows)))
    tiles = -(-rows // block_r)
    if splits is None:
        splits = choose_splits(B * Hkv * tiles, blocks, config.programs * multiprocessors(q.device.index))
    blocks_a_split = -(-blocks // min(splits, MOST_SPLITS))
    splits = -(-blocks // blocks_a_split)
    o = torch.empty((B, H, Lq, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, Lq), dtype=torch.float32, device=q.device)
    parts = (o, lse, lse)  # what one split does not touch
    if splits > 1:
        parts = torch.empty(splits * B * H * Lq * (D + 2), dtype=torch.float32, device=q.device).split(
            [splits * B * H * Lq * D, splits * B * H * Lq, splits * B * H * Lq]
        )
    decode_kernel[(tiles * splits * B * Hkv,)](
        q,
        k,
        v,
        o,
        lse,
        *parts,
        H // Hkv,
        Hkv,
        Lq,
        Lk,
        blocks_a_split * config.BLOCK_N,
        splits,
        tiles,
        B * Hkv,
        scale * math.log2(math.e),
        *q.stride(),
        *k.stride(),
        *v.stride(),
        D=D,
        CAUSAL=causal and Lq > 1,  # one query sees every key
        PRECISION="ieee",
        BLOCK_D=block_d,
        BLOCK_R=block_r,
        BLOCK_N=config.BLOCK_N,
        SPLIT=splits > 1,
        num_warps=config.num_warps,
        num_stages=config.num_stages,
    )
    if splits > 1:
        block_s = triton.next_power_of_2(splits)
        join_kernel[(B * H * Lq,)](
            *parts, o, lse, B * H * Lq, splits, D=D, BLOCK_D=block_d, BLOCK_S=block_s, num_warps=4
        )
    return o, lse


@functools.cache
def multiprocessors(device: int | None) -> int:
    """SMs of a GPU; on a CPU 1, where nothing is gained by splitting."""
    if device is None and not torch.cuda.is_available():
        return 1
    return torch.cuda.get_device_properties(
        torch.cuda.current_device() if device is None else device
    ).multi_processor_count
