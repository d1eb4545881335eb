"""Measure this machine's two roofs: how fast it copies and how fast it multiplies."""

import re
from dataclasses import dataclass
from pathlib import Path

from labs_helpers.measure.machine import Machine, this_machine
from labs_helpers.measure.timing import Timing, measure


@dataclass(frozen=True)
class Roofs:
    """The limits of a machine: DRAM bandwidth in bytes/s and matmul rate in FLOP/s.

    dtype: of the matmul, as text. copied_bytes: read plus written by the measured copy; n: the matmul's size, n×n. Both
    are 0 for roofs from a datasheet.
    """

    bandwidth: float
    flops: float
    dtype: str
    copied_bytes: int = 0
    n: int = 0

    @property
    def ridge(self) -> float:
        """Return the FLOP per byte at which the two roofs meet."""
        return self.flops / self.bandwidth


def measure_roofs(machine: Machine | None = None) -> Roofs:
    """Measure both roofs, on the GPU or on the processor; 1 to 3 s.

    Bandwidth counts bytes read plus bytes written by `Tensor.copy_` between buffers too large for the
    caches. The matmul rate is `torch.matmul`'s, on random numbers: zeros and constants switch fewer
    transistors, and a GPU clocks higher on them.
    """
    machine = machine or this_machine()
    nbytes, copy = _time_copy(machine)
    n, product = _time_matmul(machine)
    return Roofs(
        bandwidth=2 * nbytes / (copy.median_ms * 1e-3),
        flops=2 * n**3 / (product.median_ms * 1e-3),
        dtype=str(machine.dtype).removeprefix("torch."),
        copied_bytes=2 * nbytes,
        n=n,
    )


def _time_copy(machine: Machine) -> tuple[int, Timing]:
    import torch

    nbytes = _buffer_bytes(machine)
    source = torch.ones(nbytes, dtype=torch.uint8, device=machine.device)
    target = torch.empty_like(source)
    return nbytes, measure(lambda: target.copy_(source), device=machine.device)


def _time_matmul(machine: Machine) -> tuple[int, Timing]:
    import torch

    # Large enough to fill every core, and no larger than two slow cores multiply in a third of a second.
    n = 8192 if machine.device == "cuda" else 1024 if machine.cores <= 4 else 2048
    generator = torch.Generator(device=machine.device).manual_seed(0)
    a, b = (torch.randn(n, n, generator=generator, device=machine.device).to(machine.dtype) for _ in "ab")
    out = torch.empty_like(a)
    return n, measure(lambda: torch.matmul(a, b, out=out), device=machine.device)


def _buffer_bytes(machine: Machine) -> int:
    """Return the bytes of one buffer: 1 GiB on a GPU; on a processor four last-level caches, from 256 to 512 MiB.

    Some servers have caches of that size, but a longer copy would exceed a lab's memory and time.
    """
    if machine.device == "cuda":
        return min(2**30, machine.memory_bytes // 16)
    wanted = min(max(4 * _last_level_cache_bytes(), 256 * 2**20), 512 * 2**20)
    return min(wanted, machine.memory_bytes // 16)


def _last_level_cache_bytes() -> int:
    """Return the size of the first core's largest cache, as Linux reports it; 0 if it does not."""
    sizes = [0]
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        if match := re.fullmatch(r"(\d+)([KMG]?)", file.read_text().strip()):
            sizes.append(int(match[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[match[2]])
    return max(sizes)
