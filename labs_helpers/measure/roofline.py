"""The roofline model: from the bytes and operations of a computation, which of the two limits its time.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures", CACM
52(4), 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from labs_helpers.measure.roofs import Roofs


@dataclass(frozen=True)
class Work:
    """The floating-point operations of a computation, and the bytes that it moves to and from DRAM.

    Raises ValueError for negative flops, and for bytes that are not positive.
    """

    name: str
    flops: float
    bytes: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.flops) and self.flops >= 0):
            raise ValueError(f"{self.name}: flops is {self.flops}; it has to be 0 or more")
        if not (math.isfinite(self.bytes) and self.bytes > 0):
            raise ValueError(f"{self.name}: bytes is {self.bytes}; an operation moves more than 0 bytes")

    @property
    def intensity(self) -> float:
        """Return the arithmetic intensity in FLOP per byte."""
        return self.flops / self.bytes


def attainable(intensity: float, roofs: Roofs) -> float:
    """Return the highest FLOP/s that an intensity (FLOP per byte) allows under both roofs."""
    if not intensity >= 0:
        raise ValueError(f"intensity is {intensity}; it has to be 0 or more")
    return min(roofs.flops, intensity * roofs.bandwidth)


def bound(work: Work, roofs: Roofs) -> str:
    """Return 'memory' or 'compute', whichever takes longer; exactly on the ridge, 'compute'."""
    return "memory" if work.flops / roofs.flops < work.bytes / roofs.bandwidth else "compute"
