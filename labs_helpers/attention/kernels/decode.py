"""Launch the decode kernels: up to 16 queries a head, any strides, and into how many parts the keys are split."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch

from labs_helpers.attention.configs import family
from labs_helpers.attention.kernels import portable
from labs_helpers.attention.kernels.decode_kernels import decode_kernel, join_kernel
from labs_helpers.attention.kernels.hopper_launch import multiprocessors
from labs_helpers.compile.prepared_launch import PreparedLaunch, hooked, prepare
from labs_helpers.measure.machine import this_machine

LOG2_E = math.log2(math.e)
MOST_QUERIES = 16
MOST_SPLITS = 128  # what one program of join_kernel holds in registers
MOST_ROWS = 64  # a tile's rows; more go to further programs, which find K and V in L2
# Fitted to 50 shapes on an H200, where they come within 3% of the best number of splits on average: a program's start
# and the second kernel cost as much as so many blocks of keys; a last wave that is not full takes this share or more
# of a full one's time, because fewer programs share the memory.
FILL, JOIN, LAST_WAVE = 2, 3, 0.9


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
BETWEEN = DecodeConfig(128, 4, 3, 1)  # up to FEW rows of head dims between 64 and 128 on sm_90, measured at 96
FEW = 16
_INTERPRETED = DecodeConfig(64, 4, 1, 1)


def why(q) -> str | None:
    """Why these kernels take valid operands with this q; None where the others do. The one place of the rule."""
    if q.dtype in (torch.float16, torch.bfloat16) and q.shape[2] <= MOST_QUERIES:
        return f"{q.shape[2]} of at most {MOST_QUERIES} queries a head, in 16-bit floats: the keys are split instead"
    return None


def decode_config(D: int, rows: int, architecture: str | None) -> DecodeConfig:
    """Return the configuration for a head dim, the query rows per K/V head and a GPU (None: the interpreter)."""
    if architecture is None:
        return _INTERPRETED
    known = family(architecture)
    return BETWEEN if known == "sm_90" and 64 < D < 128 and rows <= FEW else CONFIGS[known][D > 64]


@functools.lru_cache(4096)
def choose_splits(programs: int, blocks: int, slots: int) -> int:
    """Into how many parts `blocks` blocks of keys are cut, where `programs` programs each would take them all and
    `slots` of them run at a time: that of the fewest steps, and of these the fewest parts.

    A part's program takes FILL + its blocks steps, a wave of `slots` programs as long as one of them (the last wave as
    much of that as is filled, and at least LAST_WAVE), and the join of more than one part JOIN steps.
    """

    def steps(splits: int) -> float:
        full, rest = divmod(programs * splits, slots)
        waves = full + (max(rest / slots, LAST_WAVE) if rest else 0)
        return waves * (FILL + -(-blocks // splits)) + JOIN * (splits > 1)

    best = min(range(1, min(blocks, MOST_SPLITS) + 1), key=lambda splits: (steps(splits), splits))
    return -(-blocks // -(-blocks // best))  # no part is empty


_prepared: dict[tuple, tuple[PreparedLaunch, ...]] = {}


class DecodeLaunch:
    """The decode kernels for q, k and v of one look on one device: the first call goes through Triton, the others to
    what it prepared (see compile/prepared_launch.py). It keeps no operand alive."""

    def __init__(self, q, k, v, causal: bool, config: DecodeConfig, splits: int | None):
        (B, H, Lq, D), (Hkv, Lk) = q.shape, k.shape[1:3]
        rows, block_d, blocks = H // Hkv * Lq, portable.block_d(D), -(-Lk // config.BLOCK_N)
        block_r = min(MOST_ROWS, max(16, 1 << (rows - 1).bit_length()))
        tiles = -(-rows // block_r)
        if splits is None:
            slots = config.programs * multiprocessors(q.device.index)
            splits = choose_splits(B * Hkv * tiles, blocks, slots)
        blocks_a_split = -(-blocks // min(splits, MOST_SPLITS))
        self.splits = -(-blocks // blocks_a_split)
        self.shape, self.rows, self.programs = (B, H, Lq, D), B * H * Lq, tiles * self.splits * B * Hkv
        self.sizes = (H // Hkv, Hkv, Lq, Lk, blocks_a_split * config.BLOCK_N, self.splits, tiles, B * Hkv)
        self.like_q = q.stride() == (H * Lq * D, Lq * D, D, 1)
        self.like_lse = (B, H, Lq), (H * Lq, Lq, 1)
        self.strides = (*q.stride(), *k.stride(), *v.stride())
        # One query sees every key. The products of float32 are not rounded.
        self.constants = (D, bool(causal) and Lq > 1, "ieee", block_d, block_r, config.BLOCK_N, self.splits > 1)
        self.options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
        self.join = (self.rows, self.splits, D, block_d, 1 << (self.splits - 1).bit_length())
        # No size is compiled in, so a cache of keys that grows by a token a step finds its kernels prepared.
        looks = tuple((t.dtype, t.device, t.data_ptr() % 16) for t in (q, k, v))
        self.look = (looks, self.strides, self.constants, config, self.join[2:])

    def __call__(self, q, k, v, scale: float):
        """(o, lse) of operands that look like those that it was made for; scale ≥ 0."""
        o = torch.empty_like(q) if self.like_q else q.new_empty(self.shape)
        lse = torch.empty_strided(*self.like_lse, dtype=torch.float32, device=q.device)
        # o, m and l of the parts in one allocation; what one split does not touch
        parts, ends = lse, (0, 0)
        if self.splits > 1:
            each = self.splits * self.rows
            parts = torch.empty_strided((each * (self.shape[3] + 2),), (1,), dtype=torch.float32, device=q.device)
            ends = (each * self.shape[3], each * (self.shape[3] + 1))
        ready = _prepared.get(self.look)
        if ready is None or not ready[0].fits():
            self._usual(q, k, v, o, lse, parts, ends, scale)
            return o, lse
        to, to_lse, base = o.data_ptr(), lse.data_ptr(), parts.data_ptr()
        at = (base, base + 4 * ends[0], base + 4 * ends[1])
        pointers = (q.data_ptr(), k.data_ptr(), v.data_ptr(), to, to_lse)
        ready[0](self.programs, *pointers, *at, *self.sizes, scale * LOG2_E, *self.strides, *self.constants)
        if self.splits > 1:
            ready[1](self.rows, *at, to, to_lse, *self.join)
        return o, lse

    def _usual(self, q, k, v, o, lse, parts, ends, scale: float) -> None:
        at = (parts, parts, parts) if self.splits == 1 else (parts, parts[ends[0] :], parts[ends[1] :])
        numbers = (*self.sizes, scale * LOG2_E, *self.strides, *self.constants)
        kernels = [decode_kernel[(self.programs,)](q, k, v, o, lse, *at, *numbers, **self.options)]
        if self.splits > 1:
            kernels.append(join_kernel[(self.rows,)](*at, o, lse, *self.join, num_warps=4))
        if self.look not in _prepared and not hooked():
            ready = tuple(prepare(kernel) for kernel in kernels)
            if None not in ready:
                _prepared[self.look] = ready


def launch_for(q, k, v, causal: bool, config: DecodeConfig | None = None, splits: int | None = None):
    """What computes (o, lse) of (q, k, v, scale) for valid operands that look like these.

    splits: at most so many parts of the keys, whole blocks each, and at most MOST_SPLITS; by default `choose_splits`.
    The parts are joined in one order: the result is the same, bit for bit, every time.
    """
    rows = q.shape[1] // k.shape[1] * q.shape[2]
    config = config or decode_config(q.shape[-1], rows, this_machine().architecture)
    ready = DecodeLaunch(q, k, v, causal, config, splits)
    copied = any(near is not given for near, given in zip(portable.within_tiles(k, v), (k, v), strict=True))

    def launch(q, k, v, scale: float):
        if scale >= 0 and not copied:
            return ready(q, k, v, scale)
        if scale < 0:
            q, scale = -q, -scale  # the same scores; the kernel takes the maximum before it scales
        k, v = portable.within_tiles(k, v)
        return DecodeLaunch(q, k, v, causal, config, splits)(q, k, v, scale)

    return launch


def forward(q, k, v, causal: bool, scale: float, config: DecodeConfig | None = None, splits: int | None = None):
    """(o, lse) of valid operands, launched as if for the first time; o (B, H, Lq, D) contiguous, lse (B, H, Lq)
    float32. config, splits: as for `launch_for`."""
    return launch_for(q, k, v, causal, config, splits)(q, k, v, scale)
