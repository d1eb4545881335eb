"""Launch the Hopper kernel: check its operands, and prepare descriptors, workspace and the number of programs."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass

import torch

from labs_helpers.compile.counters import counters
from labs_helpers.compile.prepared_launch import MAPS, PreparedLaunch, hooked, prepare
from labs_helpers.gemm.time_model import Shape, Tiling, worth_splitting
from labs_helpers.measure.machine import this_machine

PANEL = 64  # columns of B, C and D that the kernel moves at a time
WIDTHS = (64, 128, 192, 256)  # widths of tiles; wider ones need more registers than a consumer has
FEW_ROWS = 128  # up to this many rows, loads of B dominate the time, and a separate model predicts it


@dataclass(frozen=True)
class HopperConfig:
    """A configuration of the Hopper kernel.

    BLOCK_*: in elements, BLOCK_N one of WIDTHS. CONSUMERS: warpgroups that share a tile's rows, 64 or 128 each. STAGES:
    buffers of A and B. C_AFTER: steps along K before the kernel requests C. SPLITS: programs that share a tile, with
    ⌈K / BLOCK_K / SPLITS⌉ steps of its sum each. Raises ValueError for another width or fewer than one program.
    """

    BLOCK_M: int
    BLOCK_N: int
    BLOCK_K: int
    GROUP_M: int = 8
    STAGES: int = 3
    CONSUMERS: int = 2
    C_AFTER: int = 8
    SPLITS: int = 1

    def __post_init__(self) -> None:
        if self.BLOCK_N not in WIDTHS:
            raise ValueError(f"BLOCK_N is {self.BLOCK_N}; the Hopper kernel has tiles of {WIDTHS} columns")
        if self.SPLITS < 1:
            raise ValueError(f"SPLITS is {self.SPLITS}; a tile needs a program: 1 or more")

    def keywords(self) -> dict:
        return asdict(self)

    @property
    def tiling(self) -> Tiling:
        """Return the configuration as the time model sees it."""
        return Tiling(self.BLOCK_M, self.BLOCK_N, self.BLOCK_K)

    def parts(self, shape: Shape, multiprocessors: int) -> list[int]:
        """Return the SPLITS to consider for (M, N, K). With the largest tiles, a kernel that splits lacks registers."""
        if self.BLOCK_M * self.BLOCK_N > 128 * 256:
            return [1]
        return worth_splitting(self.tiling, shape, multiprocessors)

    @property
    def shared_bytes(self) -> int:
        """Return the bytes of shared memory that the buffers need for 16-bit elements, without the barriers."""
        ring = self.STAGES * (self.BLOCK_M + self.BLOCK_N) * self.BLOCK_K
        return 2 * (ring + self.BLOCK_M * self.BLOCK_N)


def why_not(a, b, c, architecture: str | None) -> str | None:
    """Return why the Hopper kernel cannot take these valid operands on this architecture; None if it can."""
    if reason := why_not_even_copied(a, architecture):
        return reason
    for name, tensor in (("a", a), ("b", b), ("c", c)):
        if reason := why_not_row(tensor):
            return f"{name}{reason}"
    if c.shape[1] % 8:
        return "D's rows would not start at multiples of 16 bytes, which TMA needs: N is no multiple of 8"
    return None


def why_not_even_copied(a, architecture: str | None) -> str | None:
    """Return why the kernel could not take copies of these operands either; None if it could."""
    if architecture != "sm_90":
        return f"the Hopper kernel needs sm_90, this is {architecture or 'the interpreter'}"
    if a.dtype not in (torch.float16, torch.bfloat16):
        return f"the Hopper kernel multiplies 16-bit floats, not {a.dtype}"
    if a.shape[1] <= 128:
        return "K is at most 128: too few steps for a ring of buffers"
    if not gluon_fits():
        return f"the Hopper kernel's Gluon is that of Triton 3.6 and 3.7, here is {this_machine().triton}"
    return None


def why_not_row(tensor) -> str | None:
    """Return why TMA cannot read the rows of this matrix of 16-bit floats; None if it can."""
    rows, columns = tensor.stride()
    if columns != 1 or rows == 0:
        return f" is not row-major with consecutive columns: strides {tensor.stride()}"
    if rows * tensor.element_size() % 16 or tensor.data_ptr() % 16:
        return "'s rows do not start at multiples of 16 bytes, which TMA needs"
    return None


def gluon_fits() -> bool:
    """Return whether this Triton has the version of Gluon that the kernel uses; it is experimental, and 3.9 differs."""
    return (this_machine().triton or "").startswith(("3.6.", "3.7."))


def hopper_matmul(a, b, c, config: HopperConfig):
    """Compute ReLU(A·B + C), (M, N), with the Hopper kernel, for operands that `why_not` accepts."""
    return hopper_launch(a, b, c, config)(a, b, c)


def hopper_launch(a, b, c, config: HopperConfig, d_strides: tuple[int, int] | None = None) -> HopperLaunch:
    """Return a launch for operands with these shapes and strides. d_strides: those of D, if the caller passes D."""
    strides = (a.stride(), b.stride(), c.stride(), d_strides or (c.shape[1], 1))
    return launch_for((*a.shape, b.shape[1]), strides, a.dtype, a.dtype, a.device, config)


class HopperLaunch:
    """A launch for operands of fixed shapes and strides, on one device, with one configuration.

    dtype: of A and B; result: of C and D. 8-bit operands come with scales, and B is (N, K) then (see hopper_kernel.py).
    The first call goes through Triton, and later calls reuse its prepared launch.
    """

    def __init__(self, sizes, strides, dtype, result, device, config: HopperConfig):
        M, K, N = sizes
        scaled = dtype.itemsize == 1
        tiles = -(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)
        rows, steps = config.BLOCK_M // config.CONSUMERS, -(-K // config.BLOCK_K)
        splits = -(-steps // -(-steps // config.SPLITS))  # only splits that have steps to add
        self.programs = min(tiles * splits, _multiprocessors(device.index))
        panel = (PANEL, config.BLOCK_K) if scaled else (config.BLOCK_K, PANEL)
        self.blocks = ((rows, config.BLOCK_K), panel, (rows, PANEL), (rows, PANEL))
        c_after = min(config.C_AFTER, steps - 1) * config.BLOCK_K
        constants = (config.BLOCK_N, config.STAGES, config.CONSUMERS, splits > 1)
        self.numbers = (M, N, K, splits, config.GROUP_M, c_after, *constants)
        self.parts = splits * tiles * config.BLOCK_M * config.BLOCK_N if splits > 1 else 0
        self.counters = tiles * config.CONSUMERS
        self.looks = tuple(zip(((M, K), (N, K) if scaled else (K, N), (M, N), (M, N)), strides, strict=True))
        self.like_c = strides[2] == strides[3] == (N, 1)
        self.shape, self.dtype, self.device = (M, N), result, device
        self.sums = torch.int32 if dtype == torch.int8 else torch.float32
        self.prepared: PreparedLaunch | None = None
        self._arguments: dict[tuple[int, ...], tuple] = {}

    def __call__(self, a, b, c, d=None, scales=None):
        """Compute D, into `d` if it is given. scales: of A's rows and B's columns, for 8-bit operands, whose C is D."""
        if d is None:  # empty_like takes two thirds of the time of torch.empty
            d = torch.empty_like(c) if self.like_c else torch.empty(self.shape, dtype=self.dtype, device=self.device)
        # Without splits the kernel reads neither pointer, so any tensor will do.
        parts, counted = self._workspace() if self.parts else (d, d)
        of_a, of_b = scales or (d, d)
        ready = self.prepared
        if ready is None or not ready.fits():
            self._usual(a, b, c, d, parts, counted, of_a, of_b)
            return d
        addresses = (a.data_ptr(), b.data_ptr(), c.data_ptr(), d.data_ptr())
        arguments = self._arguments.get(addresses)
        if arguments is None:
            arguments = self._describe(ready, addresses)
        pointers = (parts.data_ptr(), counted.data_ptr(), of_a.data_ptr(), of_b.data_ptr())
        ready(self.programs, *arguments, *pointers, *self.numbers)
        return d

    def _workspace(self) -> tuple:
        """Allocate memory for the parts of the sums, and zeros to count the parts."""
        return torch.empty(self.parts, dtype=self.sums, device=self.device), counters(self.counters, self.device)

    def _describe(self, ready: PreparedLaunch, addresses: tuple[int, ...]) -> tuple:
        """Return the launch's descriptors for matrices at these addresses; they are remembered without the matrices."""
        if len(self._arguments) >= MAPS:
            self._arguments = {}
        described: list = []
        for which, (address, (shape, strides)) in enumerate(zip(addresses, self.looks, strict=True)):
            described += (ready.map_of(which, address, shape, strides), *shape, *strides)
        self._arguments[addresses] = arguments = tuple(described)
        return arguments

    def _usual(self, a, b, c, d, *pointers) -> None:
        from labs_helpers.gemm.kernels.hopper_kernel import hopper_matmul_kernel

        described = [_descriptor(x, *block) for x, block in zip((a, b, c, d), self.blocks, strict=True)]
        kernel = hopper_matmul_kernel[(self.programs,)](*described, *pointers, *self.numbers, num_warps=4)
        if self.prepared is None and not hooked():
            self.prepared = prepare(kernel)


launch_for = functools.lru_cache(1024)(HopperLaunch)


def _descriptor(tensor, rows: int, columns: int):
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    return TensorDescriptor(
        tensor, list(tensor.shape), list(tensor.stride()), [rows, columns], _layout(rows, columns, tensor.dtype)
    )


@functools.cache
def _layout(rows: int, columns: int, dtype):
    from triton.experimental.gluon import language as gl

    floats = {torch.float16: gl.float16, torch.bfloat16: gl.bfloat16}
    codes = {torch.int8: gl.int8, torch.float8_e4m3fn: gl.float8e4nv}
    return gl.NVMMASharedLayout.get_default_for([rows, columns], (floats | codes)[dtype])


@functools.cache
def _multiprocessors(device: int | None) -> int:
    return torch.cuda.get_device_properties(
        torch.cuda.current_device() if device is None else device
    ).multi_processor_count
