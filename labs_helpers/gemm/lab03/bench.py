"""Run and measure configurations for a search, on this machine's GPU or from the recorded sweep."""

from __future__ import annotations

import torch

from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.fused import fused_matmul
from labs_helpers.gemm.tuning.operands import operands, rounding_bound
from labs_helpers.gemm.tuning.recorded import Recorded, measured
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.timing import measure as time_it


class Live:
    """A bench for D = ReLU(A·B + C) at one shape in float16 on this machine's GPU, with the interface of `Recorded`."""

    def __init__(self, shape: tuple[int, int, int]):
        self.shape = shape
        a, b, c = self.operands = operands(*shape)
        self.expected = torch.relu(a.double() @ b.double() + c.double())
        self.bound = rounding_bound(a, b, c, self.expected)

    def run(self, config: Config):
        return fused_matmul(*self.operands, config=config)

    def measure(self, config: Config) -> float:
        """Return the median time in ms."""
        return time_it(lambda: self.run(config), warmup_ms=5, repeat_ms=25).median_ms


def bench_here(shape: tuple[int, int, int]):
    """Return (bench, source of its times): this machine's GPU or, without one, the sweep recorded on an H200."""
    if this_machine().device == "cuda":
        return Live(shape), this_machine().label
    frame = measured()
    return Recorded(frame, "fused_matmul", shape), f"{frame['on.machine'].iloc[0]}, recorded"
