"""Launch the Hopper kernels; operands with the same shapes and strides share sizes and descriptors.

The first call of a `ForwardLaunch` or a `BackwardLaunch` goes through Triton. Later calls reuse its prepared launch
(see compile/prepared_launch.py), bound to addresses, scale and stream, which recur in a loop. Neither keeps a reference
to an operand.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from labs_helpers.attention.kernels import portable
from labs_helpers.attention.kernels.hopper_backward_ends import prepare_kernel, round_kernel
from labs_helpers.compile.counters import counters
from labs_helpers.compile.prepared_launch import MAPS, PreparedLaunch, hooked, prepare

ROWS = 64  # query rows per warpgroup; in the backward pass, key rows
BACKWARD_BLOCK_N = 128  # keys per program, which has two warpgroups
LOG2_E = math.log2(math.e)
MIB = 2**20
PARTS = 10  # cost of the two sums over the parts of a group, in steps of a program


@dataclass(frozen=True)
class ForwardConfig:
    """Configuration of the forward kernel.

    CONSUMERS: warpgroups of 64 query rows. BLOCK_N: keys per block. STAGES: buffers of K and of V. BY_TURNS: a consumer
    starts its products only after the previous consumer has started its own. Q_BUFFERS: with 2, a tile's q is loaded
    while the previous tile is computed. DRAWN: free programs draw tiles from a counter; otherwise tiles are assigned
    beforehand. PER_SM: programs that an SM runs at a time; with 2, a consumer has 104 registers per thread.
    """

    CONSUMERS: int
    BLOCK_N: int
    STAGES: int
    BY_TURNS: bool
    Q_BUFFERS: int = 2
    DRAWN: bool = True
    PER_SM: int = 1


@dataclass(frozen=True)
class BackwardConfig:
    """Configuration of the backward kernel: BLOCK_M queries per step, STAGES buffers of q and of dO."""

    BLOCK_M: int = 64
    STAGES: int = 2


def forward_options(per_sm: int) -> dict[str, int]:
    """Return the launch options of the forward kernel.

    num_warps is that of its first role. For two programs per SM, maxnreg is small enough for both; the roles then
    divide a program's registers among themselves.
    """
    return {"num_warps": 4} | ({"maxnreg": 80} if per_sm == 2 else {})


class ForwardLaunch:
    """Launch `hopper_forward_kernel` for q, k and v with fixed shapes and strides, on one device."""

    def __init__(self, q, k, v, causal: bool, config: ForwardConfig):
        (B, H, Lq, D), (Hkv, Lk) = q.shape, k.shape[1:3]
        self.config, self.causal, self.device = config, bool(causal), q.device
        self.shape, block_d = (B, H, Lq, D), block_d_of(D)
        contiguous, self.like_lse = _contiguous(self.shape), ((B, H, Lq), (H * Lq, Lq, 1))
        self.like_q = q.stride() == contiguous
        self.layouts = [(tuple(t.shape), t.stride()) for t in (q, k, v)] + [(self.shape, contiguous)]
        self.blocks = [(1, 1, rows, block_d) for rows in (ROWS, config.BLOCK_N, config.BLOCK_N, ROWS)]
        tiles_m = -(-Lq // (config.CONSUMERS * ROWS))
        self.tiles = tiles_m * B * H
        # All programs together read the K and V of a group. With a mask, a larger group can be divided more evenly.
        head_group = heads_in_l2((48 if causal else 12) * MIB, Lk * block_d * 4, B * H)
        self.sizes = (H, H // Hkv, Lq, Lk, tiles_m, B * H, head_group)
        self.programs = min(config.PER_SM * multiprocessors(q.device.index), self.tiles)
        self.drawn = config.DRAWN and self.tiles > self.programs  # with one tile per program, no counter is needed
        self.constants = (
            config.CONSUMERS,
            config.STAGES,
            self.causal,
            config.BY_TURNS,
            config.Q_BUFFERS,
            self.drawn,
            config.PER_SM,
        )
        self.options = forward_options(config.PER_SM)
        self.prepared: PreparedLaunch | None = None
        self._calls: dict[tuple[float, ...], Callable[[], None]] = {}

    def __call__(self, q, k, v, scale: float):
        """Return (o, lse): o contiguous, lse, (B, H, Lq), in float32."""
        if scale <= 0:
            return portable.forward(q, k, v, self.causal, scale)  # this kernel takes the maximum before it scales
        # empty_like takes half of the time of torch.empty, empty_strided two thirds.
        o = torch.empty_like(q) if self.like_q else q.new_empty(self.shape)
        lse = torch.empty_strided(*self.like_lse, dtype=torch.float32, device=self.device)
        counter = counters(1, self.device) if self.drawn else lse  # lse is a placeholder that the kernel does not use
        ready = self.prepared
        if ready is None or not ready.fits():
            numbers = (*self.sizes, scale * LOG2_E, *self.constants)
            self._usual((q, k, v, o), lse, counter.view(torch.int32), numbers)
            return o, lse
        of_q, of_k, of_v, of_o = q.data_ptr(), k.data_ptr(), v.data_ptr(), o.data_ptr()
        key = (of_q, of_k, of_v, of_o, lse.data_ptr(), counter.data_ptr(), scale, ready.stream())
        call = self._calls.get(key)
        if call is None:
            if len(self._calls) >= MAPS:
                self._calls = {}
            call = self._calls[key] = self._bind(ready, *key)
        call()
        return o, lse

    def _bind(self, ready, q, k, v, o, lse, counter, scale, stream):
        described = _described(ready, (q, k, v, o), self.layouts)
        numbers = (*self.sizes, scale * LOG2_E, *self.constants)
        return ready.bind(self.programs, stream, *described, lse, counter, *numbers)

    def _usual(self, tensors, lse, counter, numbers) -> None:
        from labs_helpers.attention.kernels.hopper_forward import hopper_forward_kernel

        described = [_descriptor(t, block) for t, block in zip(tensors, self.blocks, strict=True)]
        kernel = hopper_forward_kernel[(self.programs,)](*described, lse, counter, *numbers, **self.options)
        self.prepared = self.prepared or (None if hooked() else prepare(kernel))


class BackwardLaunch:
    """Launch the three kernels of a backward pass for operands with fixed shapes and strides, on one device.

    Atomic additions sum dQ in float32, in an order that varies from run to run.
    """

    def __init__(self, q, k, v, o, do, causal: bool, config: BackwardConfig):
        (B, H, Lq, D), (Hkv, Lk) = q.shape, k.shape[1:3]
        self.causal, self.config, self.block_d = bool(causal), config, block_d_of(D)
        self.copies_do = unreadable(do) is not None
        block_m, block_d = config.BLOCK_M, self.block_d
        q_blocks, tiles_n = -(-Lq // block_m), -(-Lk // BACKWARD_BLOCK_N)
        self.parts = parts_of_group(H // Hkv, tiles_n * B * Hkv, q_blocks, multiprocessors(q.device.index), causal)
        kv_heads, group_size = Hkv * self.parts, H // Hkv // self.parts  # the kernel treats each part as a K/V head
        self.summed, of_parts = (B, Hkv, self.parts, Lk, D), (B, kv_heads, Lk, D)
        self.shapes = [tuple(q.shape), of_parts, of_parts]
        self.like = [
            t.stride() == _contiguous(t.shape) and tuple(t.shape) == self.shapes[i] for i, t in enumerate((q, k, v))
        ]
        do_strides = _contiguous(q.shape) if self.copies_do else do.stride()
        self.blocks_of_rows = all_blocks = B * H * q_blocks
        self.programs = tiles_n * B * kv_heads
        self.stats_shape, self.sums_shape = (2 * all_blocks, block_m), (all_blocks * block_m, block_d)
        self.sums_size = all_blocks * block_m * block_d
        self.work_size, self.device = (self.sums_size + 2 * all_blocks * block_m,), q.device
        self.layouts = [
            (tuple(q.shape), q.stride()),
            (tuple(do.shape), do_strides),
            (self.stats_shape, (block_m, 1)),
            (tuple(k.shape), k.stride()),
            (tuple(v.shape), v.stride()),
            (of_parts, _contiguous(of_parts)),
            (of_parts, _contiguous(of_parts)),
            (self.sums_shape, (block_d, 1)),
        ]
        keys, queries = (1, 1, ROWS, block_d), (1, 1, block_m, block_d)
        # For dQ, the columns of K are divided into halves; a swizzle as wide as a half keeps each half contiguous.
        self.blocks = [(queries, None), (queries, None), ((1, block_m), 0), (keys, min(128, block_d))]
        self.blocks += [(keys, None)] * 3 + [((block_m, block_d // 2), None)]
        # All programs together read a group's q and dO and add to its dQ, at 8 bytes per element.
        head_group = heads_in_l2(24 * MIB, group_size * Lq * block_d * 8, B * kv_heads)
        self.sizes = (kv_heads, group_size, Lq, Lk, q_blocks, tiles_n, B * kv_heads, head_group, self.parts, all_blocks)
        self.constants = (config.STAGES, self.causal, Lk % BACKWARD_BLOCK_N != 0)
        self.ends = (H, Lq, q_blocks), (*o.stride(), *do_strides, D, block_m, block_d), (D, block_m, block_d)
        self.prepared: tuple[PreparedLaunch, ...] | None = None
        self._calls: dict[tuple[float, ...], tuple[Callable[[], None], ...]] = {}

    def __call__(self, q, k, v, o, lse, do, scale: float):
        """Return contiguous (dq, dk, dv)."""
        if scale <= 0:
            return portable.backward(q, k, v, o, lse, do, self.causal, scale)
        if self.copies_do:
            do = do.contiguous()
        lse = lse.contiguous()
        # One allocation for both: dQ's sums, then the rows' statistics.
        work = lse.new_empty_strided(self.work_size, (1,))  # takes three quarters of torch.empty_strided's time
        (q_like, k_like, v_like), (of_q, of_k, of_v) = self.like, self.shapes
        dq = torch.empty_like(q) if q_like else q.new_empty(of_q)
        dk = torch.empty_like(k) if k_like else k.new_empty(of_k)
        dv = torch.empty_like(v) if v_like else v.new_empty(of_v)
        ready = self.prepared
        if ready is None or not ready[0].fits():
            self._usual(q, k, v, o, lse, do, dq, dk, dv, work, scale)
        else:
            of_q, of_k, of_v, of_o, of_do = q.data_ptr(), k.data_ptr(), v.data_ptr(), o.data_ptr(), do.data_ptr()
            made = (dq.data_ptr(), dk.data_ptr(), dv.data_ptr(), work.data_ptr())
            key = (of_q, of_k, of_v, of_o, lse.data_ptr(), of_do, *made, scale, ready[0].stream())
            calls = self._calls.get(key)
            if calls is None:
                if len(self._calls) >= MAPS:
                    self._calls = {}
                calls = self._calls[key] = self._bind(ready, *key)
            for call in calls:
                call()
        if self.parts > 1:
            dk, dv = dk.view(self.summed).sum(2), dv.view(self.summed).sum(2)  # summed in float32 and rounded once
        return dq, dk, dv

    def _bind(self, ready, q, k, v, o, lse, do, dq, dk, dv, sums, scale, stream):
        first, main, last = ready
        stats, rows, (heads, tail, end) = sums + 4 * self.sums_size, self.blocks_of_rows, self.ends
        described = _described(main, (q, do, stats, k, v, dk, dv, sums), self.layouts)
        numbers = (*self.sizes, scale * LOG2_E, scale, *self.constants)
        return (
            first.bind(rows, stream, o, do, lse, stats, sums, *heads, rows, scale, *tail),
            main.bind(self.programs, stream, *described, *numbers),
            last.bind(rows, stream, sums, dq, *heads, scale, *end),
        )

    def _usual(self, q, k, v, o, lse, do, dq, dk, dv, work, scale: float) -> None:
        from labs_helpers.attention.kernels.hopper_backward import hopper_backward_kernel

        sums, stats = work[: self.sums_size].view(self.sums_shape), work[self.sums_size :].view(self.stats_shape)
        heads, tail, end = self.ends
        rows = self.blocks_of_rows
        first = prepare_kernel[(rows,)](o, do, lse, stats, sums, *heads, rows, scale, *tail)
        tensors = zip((q, do, stats, k, v, dk, dv, sums), self.blocks, strict=True)
        main = hopper_backward_kernel[(self.programs,)](
            *(_descriptor(tensor, *block) for tensor, block in tensors),
            *self.sizes,
            scale * LOG2_E,
            scale,
            *self.constants,
            num_warps=4,
        )
        last = round_kernel[(rows,)](sums, dq, *heads, scale, *end)
        if self.prepared is None and not hooked():
            ready = tuple(prepare(kernel) for kernel in (first, main, last))
            self.prepared = ready if None not in ready else None


def block_d_of(D: int) -> int:
    """Return the width of a tile for head dim D."""
    return 64 if D <= 64 else 128


def heads_in_l2(budget: float, bytes_a_head: int, heads: int) -> int:
    """Return the number of heads that programs process together so that their data stays in the L2 cache."""
    return max(1, min(heads, int(budget) // bytes_a_head))


def parts_of_group(group: int, programs: int, q_blocks: int, multiprocessors: int, causal: bool) -> int:
    """Return the number of parts into which the backward pass divides a group of `group` query heads.

    The choice is the divisor of `group` with the least predicted time, and the smallest such divisor. programs: the
    number of programs without parts; each takes group · q_blocks steps, fewer with a mask.
    """
    if programs >= 4 * multiprocessors:
        return 1  # more programs would only fill the last wave better

    def steps(parts: int) -> float:
        longest = group // parts * q_blocks
        if causal:  # half of the steps on average, longest programs first; a fraction of one remains at the end
            time = max(longest, programs * group * q_blocks / (2 * multiprocessors)) + longest / 4
        else:
            time = math.ceil(programs * parts / multiprocessors) * longest
        return time + PARTS * (parts > 1)

    return min((parts for parts in range(1, group + 1) if group % parts == 0), key=steps)


def unreadable(tensor) -> str | None:
    """Return why TMA cannot read a 16-bit (B, H, L, D) tensor, or None if it can."""
    *outer, last = tensor.stride()
    if last != 1:
        return f"head dim is not consecutive: strides {tensor.stride()}"
    if tensor.data_ptr() % 16 or any(stride <= 0 or stride * 2 % 16 for stride in outer):
        return f"rows do not start at multiples of 16 bytes, which TMA needs: strides {tensor.stride()}"
    return None


@functools.cache
def multiprocessors(device: int | None) -> int:
    """Return the number of SMs of a GPU, by default the current one; 1 without a GPU."""
    if device is None and not torch.cuda.is_available():
        return 1
    return torch.cuda.get_device_properties(
        torch.cuda.current_device() if device is None else device
    ).multi_processor_count


def _contiguous(shape) -> tuple[int, ...]:
    *_, heads, length, width = shape
    return heads * length * width, length * width, width, 1


def _described(ready: PreparedLaunch, addresses: tuple[int, ...], layouts) -> tuple:
    """Return the launcher's arguments for descriptors: the tensor map, shape and strides of each."""
    arguments: list = []
    for which, (address, (shape, strides)) in enumerate(zip(addresses, layouts, strict=True)):
        arguments += (ready.map_of(which, address, shape, strides), *shape, *strides)
    return tuple(arguments)


def _descriptor(tensor, block: tuple[int, ...], swizzle: int | None = None):
    """Return the descriptor of a tensor in blocks; elements outside the tensor are read as 0."""
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
