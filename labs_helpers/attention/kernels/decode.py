"""Launch the decode kernels, for up to 16 queries per head and any strides, and choose the number of key splits."""

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
MOST_SPLITS = 128  # one program of join_kernel keeps this many in registers
MOST_ROWS = 64  # rows per tile; more rows go to further programs, which read K and V from L2
# Fitted to 50 shapes on an H200, where the choice is within 3% of the best number of splits on average. FILL and JOIN
# are the costs of a program's start and of the second kernel, in blocks of keys. A last wave that is not full takes at
# least LAST_WAVE of a full wave's time, because fewer programs share the memory.
FILL, JOIN, LAST_WAVE = 2, 3, 0.9


@dataclass(frozen=True)
class DecodeConfig:
    """BLOCK_N keys per step, num_warps and num_stages as in Config, and the number of programs that one SM runs."""

    BLOCK_N: int
    num_warps: int
    num_stages: int
    programs: int


# Family → (head dim up to 64, up to 128) in 16-bit floats. Compiled, not measured: at least 64 KB of loads in flight
# per SM on sm_90; a single buffer on sm_75, which has no asynchronous copies.
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
    """Return why these kernels handle valid operands with this q, or None if other kernels do."""
    if q.dtype in (torch.float16, torch.bfloat16) and q.shape[2] <= MOST_QUERIES:
        return f"{q.shape[2]} of at most {MOST_QUERIES} queries per head, in 16-bit floats: the keys are split instead"
    return None


def decode_config(D: int, rows: int, architecture: str | None) -> DecodeConfig:
    """Return the configuration for a head dim, the query rows per K/V head and a GPU (None: the interpreter)."""
    if architecture is None:
        return _INTERPRETED
    known = family(architecture)
    return BETWEEN if known == "sm_90" and 64 < D < 128 and rows <= FEW else CONFIGS[known][D > 64]


@functools.lru_cache(4096)
def choose_splits(programs: int, blocks: int, slots: int) -> int:
    """Return the number of parts into which to split `blocks` blocks of keys: the fewest steps, then the fewest parts.

    Without a split, `programs` programs would each process all blocks; `slots` programs run at a time. A program takes
    FILL steps plus one per block. A wave of `slots` programs takes as long as one program, and a partly filled last
    wave takes its filled share of that, but at least LAST_WAVE. Joining several parts takes JOIN steps.
    """

    def steps(splits: int) -> float:
        full, rest = divmod(programs * splits, slots)
        waves = full + (max(rest / slots, LAST_WAVE) if rest else 0)
        return waves * (FILL + -(-blocks // splits)) + JOIN * (splits > 1)

    best = min(range(1, min(blocks, MOST_SPLITS) + 1), key=lambda splits: (steps(splits), splits))
    return -(-blocks // -(-blocks // best))  # no part is empty


_prepared: dict[tuple, tuple[PreparedLaunch, ...]] = {}


class DecodeLaunch:
    """Launch the decode kernels for q, k and v with fixed shapes, strides and dtypes, on one device.

    The first call goes through Triton; later calls reuse its prepared launch (see compile/prepared_launch.py). Keeps no
    reference to an operand.
    """

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
        # A single query sees every key, so it needs no mask. "ieee": float32 products are not rounded to TF32.
        self.constants = (D, bool(causal) and Lq > 1, "ieee", block_d, block_r, config.BLOCK_N, self.splits > 1)
        self.options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
        self.join = (self.rows, self.splits, D, block_d, 1 << (self.splits - 1).bit_length())
        # Sizes are not compile-time constants, so a key cache that grows by one token per step reuses prepared kernels.
        operands = tuple((t.dtype, t.device, t.data_ptr() % 16) for t in (q, k, v))
        self.key = (operands, self.strides, self.constants, config, self.join[2:])

    def __call__(self, q, k, v, scale: float):
        """Return (o, lse) for operands with this launch's shapes, strides and dtypes; scale ≥ 0."""
        o = torch.empty_like(q) if self.like_q else q.new_empty(self.shape)
        lse = torch.empty_strided(*self.like_lse, dtype=torch.float32, device=q.device)
        # One allocation holds o, m and l of all parts; a single split does not use it.
        parts, ends = lse, (0, 0)
        if self.splits > 1:
            each = self.splits * self.rows
            parts = torch.empty_strided((each * (self.shape[3] + 2),), (1,), dtype=torch.float32, device=q.device)
            ends = (each * self.shape[3], each * (self.shape[3] + 1))
        ready = _prepared.get(self.key)
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
        if self.key not in _prepared and not hooked():
            ready = tuple(prepare(kernel) for kernel in kernels)
            if None not in ready:
                _prepared[self.key] = ready


def launch_for(q, k, v, causal: bool, config: DecodeConfig | None = None, splits: int | None = None):
    """Return a function (q, k, v, scale) → (o, lse) for valid operands with these shapes, strides and dtypes.

    splits: the largest number of parts of the keys, in whole blocks, at most MOST_SPLITS; by default `choose_splits`.
    The parts are joined in a fixed order, so the result has the same bits every time.
    """
    rows = q.shape[1] // k.shape[1] * q.shape[2]
    config = config or decode_config(q.shape[-1], rows, this_machine().architecture)
    ready = DecodeLaunch(q, k, v, causal, config, splits)
    copied = any(near is not given for near, given in zip(portable.within_tiles(k, v), (k, v), strict=True))

    def launch(q, k, v, scale: float):
        if scale >= 0 and not copied:
            return ready(q, k, v, scale)
        if scale < 0:
            q, scale = -q, -scale  # gives the same scores; the kernel takes the maximum before it scales
        k, v = portable.within_tiles(k, v)
        return DecodeLaunch(q, k, v, causal, config, splits)(q, k, v, scale)

    return launch


def forward(q, k, v, causal: bool, scale: float, config: DecodeConfig | None = None, splits: int | None = None):
    """Return (o, lse) for valid operands with a new launch: o, (B, H, Lq, D), contiguous, lse, (B, H, Lq), in float32.

    config, splits: as in `launch_for`.
    """
    return launch_for(q, k, v, causal, config, splits)(q, k, v, scale)
