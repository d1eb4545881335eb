"""Launch the decoding step's attention on a static or a paged cache; a tensor on the device counts used positions."""

from __future__ import annotations

import torch

from labs_helpers.attention.kernels import portable
from labs_helpers.attention.kernels.cached_kernel import cached_attention_kernel
from labs_helpers.attention.kernels.decode import MOST_ROWS, DecodeConfig, choose_splits, decode_config
from labs_helpers.attention.kernels.hopper_launch import multiprocessors
from labs_helpers.attention.operands import DTYPES, HEAD_DIMS
from labs_helpers.compile.counters import counters
from labs_helpers.compile.dependent_launch import can_depend, dependent_options
from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.measure.machine import this_machine

# With few K/V heads in a batch, a step's time is that of its latencies: programs of few warps that load one block each.
FEW_HEADS, FOR_FEW = 64, DecodeConfig(64, 2, 1, 4)


class CachedAttention:
    """Attention of one new position per sequence, in one launch for caches of one shape.

    Calls pass no lengths from the host, so a CUDA graph that captured a call stays right as the sequences grow.

    cache: (B, Hkv, capacity, D), the shape and strides of the k and the v cache of a layer. heads: H, a multiple of
    Hkv. scale: of the scores, positive; by default 1/√D. config, splits: by default for this GPU and a full cache.
    dependent: see compile/dependent_launch.py; by default if the GPU can. table: (B, pages per sequence), int32, for a
    cache of pages, (pages, Hkv, positions per page, D). ValueError and TypeError for operands that the kernel does not
    take.
    """

    def __init__(
        self,
        cache: torch.Tensor,
        heads: int,
        scale: float | None = None,
        config: DecodeConfig | None = None,
        splits: int | None = None,
        dependent: bool | None = None,
        table: torch.Tensor | None = None,
    ):
        B, Hkv, capacity, D = cache.shape
        page = 0
        if table is not None:
            page, (B, pages) = capacity, table.shape
            capacity = page * pages
            if table.dtype != torch.int32 or table.stride(1) != 1:
                raise ValueError(
                    f"the table is {table.dtype} with strides {table.stride()}; it has to be rows of int32"
                )
        if cache.dtype not in DTYPES:
            raise TypeError(f"the cache is {cache.dtype}; float16, bfloat16 or float32 is needed")
        if D not in HEAD_DIMS or D % 2:
            raise ValueError(f"the cache has head dim {D}; the kernel takes even ones from {min(HEAD_DIMS)} to 128")
        if cache.stride(3) != 1 or cache.stride(2) >= 2**23:
            raise ValueError(f"the cache has strides {cache.stride()}; a position's D numbers have to be neighbors")
        if heads % Hkv or heads // Hkv > MOST_ROWS:
            raise ValueError(
                f"heads is {heads}; at most {MOST_ROWS} of them share each of the cache's {Hkv}, all alike"
            )
        architecture = this_machine().architecture if cache.is_cuda else None
        group, block_d = heads // Hkv, portable.block_d(D)
        if config is None:
            few = architecture == "sm_90" and D == 128 and B * Hkv <= FEW_HEADS
            config = FOR_FEW if few else decode_config(D, group, architecture)
        if splits is None:
            slots = config.programs * (multiprocessors(cache.device.index) if cache.is_cuda else 1)
            splits = choose_splits(B * Hkv, -(-capacity // config.BLOCK_N), slots)
        dependent = can_depend() if dependent is None else dependent
        self.shape, self.like, self.splits, self.heads = (B, heads * D), cache.stride(), splits, B * Hkv
        scale_log2 = (D**-0.5 if scale is None else scale) * portable.LOG2_E
        width = (heads + 2 * Hkv) * D
        stride_table = 0 if table is None else table.stride(0)
        numbers = (group, Hkv, splits, B * heads, scale_log2, width, *cache.stride()[:3], stride_table)
        self.constants = {
            "D": D,
            "PRECISION": "ieee",  # float32 products are not rounded to TF32
            "BLOCK_D": block_d,
            "BLOCK_R": max(16, 1 << (group - 1).bit_length()),
            "BLOCK_N": config.BLOCK_N,
            "BLOCK_S": 1 << (splits - 1).bit_length(),
            "PAGE": page,
            "DEPENDENT": dependent,
        }
        options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
        options |= dependent_options(dependent)
        self.launch = TensorLaunch(cached_attention_kernel, B * Hkv * splits, numbers, self.constants, options)

    def __call__(self, qkv, cos, sin, lengths, k, v, table=None):
        """Return o, (B, H · D); store the new position's rotated k and its v at `lengths` of the caches.

        qkv: (B, (H + 2 · Hkv) · D), contiguous, of the cache's dtype. cos, sin: (positions, D/2), float32. lengths:
        (B,), int32, less than the capacity and the positions of cos. k, v: caches with the shape and strides given.
        table: with the shape and strides given, if one was.
        """
        B, width = self.shape
        o = qkv.new_empty(self.shape)
        parts = [o] * 4  # not used without parts
        if self.splits > 1:
            rows, D = self.splits * B * width // self.constants["D"], self.constants["D"]
            floats = qkv.new_empty(rows * (D + 2), dtype=torch.float32)
            parts = [floats, floats[rows * D :], floats[rows * (D + 1) :], counters(self.heads, qkv.device)]
        self.launch(qkv, cos, sin, lengths, lengths if table is None else table, k, v, o, *parts)
        return o
