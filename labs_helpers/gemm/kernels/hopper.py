"""Launch the Hopper kernel: descriptors, the number of programs, and what it cannot take."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass

import torch

from labs_helpers.compile.prepared_launch import PreparedLaunch, hooked, prepare
from labs_helpers.measure.machine import this_machine


@dataclass(frozen=True)
class HopperConfig:
    """BLOCK_* in elements; CONSUMERS warpgroups share a tile's rows, BLOCK_M / CONSUMERS = 64 of them each or more;
    STAGES buffers of A and B; C is asked for after C_AFTER steps along K."""

    BLOCK_M: int
    BLOCK_N: int
    BLOCK_K: int
    GROUP_M: int = 8
    STAGES: int = 3
    CONSUMERS: int = 2
    C_AFTER: int = 8

    def keywords(self) -> dict:
        return asdict(self)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of the buffers for 16-bit elements, without the barriers."""
        ring = self.STAGES * (self.BLOCK_M + self.BLOCK_N) * self.BLOCK_K
        return 2 * (ring + self.BLOCK_M * self.BLOCK_N)


def why_not(a, b, c, architecture: str | None) -> str | None:
    """Why the Hopper kernel cannot take these valid operands on this architecture; None when it can."""
    if reason := why_not_even_copied(a, architecture):
        return reason
    for name, tensor in (("a", a), ("b", b), ("c", c)):
        if reason := why_not_row(tensor):
            return f"{name}{reason}"
    if c.shape[1] % 8:
        return "D's rows would not start at multiples of 16 bytes, which TMA needs: N is no multiple of 8"
    return None


def why_not_even_copied(a, architecture: str | None) -> str | None:
    """Why it could not take copies of them either, whatever their strides; None when it could."""
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
    """Why TMA cannot read the rows of this matrix of 16-bit floats; None when it can."""
    rows, columns = tensor.stride()
    if columns != 1 or rows == 0:
        return f" is not row-major with consecutive columns: strides {tensor.stride()}"
    if rows * tensor.element_size() % 16 or tensor.data_ptr() % 16:
        return "'s rows do not start at multiples of 16 bytes, which TMA needs"
    return None


def gluon_fits() -> bool:
    """Whether this Triton has the Gluon that the kernel is written in; it is experimental, and differs in 3.9."""
    return (this_machine().triton or "").startswith(("3.6.", "3.7."))


def hopper_matmul(a, b, c, config: HopperConfig, d=None):
    """ReLU(A·B + C) by the Hopper kernel. Operands as `why_not` accepts them; returns (M, N), or d, where it is given,
    with rows that TMA can write."""
    (M, K), N = a.shape, b.shape[1]
    if d is None:
        d = torch.empty((M, N), dtype=a.dtype, device=a.device)
    _launch_for(M, N, K, a.dtype, a.device, config)(a, b, c, d)
    return d


@functools.lru_cache(1024)
def _launch_for(M: int, N: int, K: int, dtype, device, config: HopperConfig) -> HopperLaunch:
    return HopperLaunch(M, N, K, config, _multiprocessors(device.index))


class HopperLaunch:
    """One shape with one configuration on one device: the first call goes through Triton, the others go straight to
    what it prepared."""

    def __init__(self, M: int, N: int, K: int, config: HopperConfig, multiprocessors: int):
        tiles = -(-M // config.BLOCK_M) * -(-N // config.BLOCK_N)
        self.programs = min(tiles, multiprocessors)
        rows, steps = config.BLOCK_M // config.CONSUMERS, -(-K // config.BLOCK_K)
        self.blocks = ((rows, config.BLOCK_K), (config.BLOCK_K, config.BLOCK_N), *[(rows, config.BLOCK_N)] * 2)
        c_after = min(config.C_AFTER, steps - 1) * config.BLOCK_K
        self.numbers = (M, N, K, config.GROUP_M, c_after, config.BLOCK_N, config.STAGES, config.CONSUMERS)
        self.prepared: PreparedLaunch | None = None

    def __call__(self, a, b, c, d) -> None:
        ready = self.prepared
        if ready is None or not ready.fits():
            self._usual(a, b, c, d)
            return
        matrix = ready.matrix
        ready(self.programs, *matrix(0, a), *matrix(1, b), *matrix(2, c), *matrix(3, d), *self.numbers)

    def _usual(self, a, b, c, d) -> None:
        from labs_helpers.gemm.kernels.hopper_kernel import hopper_matmul_kernel

        described = [_descriptor(x, *block) for x, block in zip((a, b, c, d), self.blocks, strict=True)]
        kernel = hopper_matmul_kernel[(self.programs,)](*described, *self.numbers, num_warps=4)
        if self.prepared is None and not hooked():
            self.prepared = prepare(kernel)


def _descriptor(tensor, rows: int, columns: int):
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    return TensorDescriptor(
        tensor, list(tensor.shape), list(tensor.stride()), [rows, columns], _layout(rows, columns, tensor.dtype)
    )


@functools.cache
def _layout(rows: int, columns: int, dtype):
    from triton.experimental.gluon import language as gl

    return gl.NVMMASharedLayout.get_default_for(
        [rows, columns], {torch.float16: gl.float16, torch.bfloat16: gl.bfloat16}[dtype]
    )


@functools.cache
def _multiprocessors(device: int | None) -> int:
    return torch.cuda.get_device_properties(
        torch.cuda.current_device() if device is None else device
    ).multi_processor_count
