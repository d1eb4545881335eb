"""Measure how a rate depends on the length of the measurement.

A GPU that has rested runs at its highest clock. A GPU that computes without a pause soon reaches its limit of power and
runs slower. A sweep of short measurements, with pauses for the compiler, therefore gives higher rates than a long race.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from datetime import datetime
from functools import partial

import torch

from labs_helpers.gemm.configs import default_config
from labs_helpers.gemm.fused import fused_matmul
from labs_helpers.gemm.tuning.operands import operands
from labs_helpers.gemm.tuning.recorded import Recorded, measured
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.timing import Timing, measure, measure_rounds

ALONE = "A·B alone"
DEFAULT = "fused_matmul, default_config"


def measure_long(shape: tuple[int, int, int], fastest: int = 12) -> list[dict]:
    """Return records of kind 'long' at one shape in float16, with times in ms and three values of `how`.

    'short' is the median of 5 measurements like the sweep's (5 ms warm-up, 25 ms), each after 0.3 s of rest. 'long' is
    one measurement of 1 s after 0.5 s of warm-up. In 'rounds' all candidates take 5 turns, as in lab 02's study. The
    candidates are PyTorch's A·B, `default_config` and the `fastest` of the sweep recorded on an H200; 'short' and
    'long' measure only the first two and the fastest. sm_mhz and watts are medians of nvidia-smi's readings, if it
    gives any; 'short', which rests most of the time, has none.
    """
    a, b, c = operands(*shape)
    best = Recorded(measured(), "fused_matmul", shape).ranking()[:fastest]
    configs = {DEFAULT: default_config(*shape, torch.float16, this_machine().architecture)}
    configs |= {f"fused_matmul, rank {rank} of the sweep": config for rank, config in enumerate(best, 1)}
    ways = {ALONE: lambda: torch.matmul(a, b)}
    ways |= {name: partial(fused_matmul, a, b, c, config=config) for name, config in configs.items()}
    for way in ways.values():
        way()
    telling = [ALONE, DEFAULT, next(name for name in configs if name != DEFAULT)]
    found: list[tuple[str, str, Timing, float, float]] = []
    with Clock() as clock:
        for name in telling:
            for how, measured_so in (("short", _short), ("long", _long)):
                began = time.time()
                timing = measured_so(ways[name])
                found.append((name, how, timing, began, time.time()))
        began = time.time()
        for name, timing in measure_rounds(ways, rounds=5, repeat_ms=200).items():
            found.append((name, "rounds", timing, began, time.time()))
    M, N, K = shape
    return [
        {"study": "gemm-tuning", "kind": "long", "kernel": name, "how": how, "M": M, "N": N, "K": K}
        | {"dtype": "float16", **(configs[name].keywords() if name in configs else {})}
        | timing.record()
        | (clock.between(began, ended) if how != "short" else {})
        for name, how, timing, began, ended in found
    ]


def _short(way) -> Timing:
    medians = []
    for _ in range(5):
        torch.cuda.synchronize()
        time.sleep(0.3)
        medians.append(measure(way, warmup_ms=5, repeat_ms=25).median_ms)
    return Timing.of(medians)


def _long(way) -> Timing:
    return measure(way, warmup_ms=500, repeat_ms=1000)


class Clock:
    """Collect nvidia-smi's readings of the first GPU during the `with` block, about 50 per second."""

    _QUERY = ("nvidia-smi", "--id=0", "--query-gpu=timestamp,clocks.sm,power.draw", "--format=csv,noheader,nounits")

    def __enter__(self):
        self._file = tempfile.TemporaryFile("w+")
        try:
            # It writes to a file, because a pipe that nobody reads is full after half a minute and blocks nvidia-smi.
            self._process = subprocess.Popen((*self._QUERY, "-lms", "20"), stdout=self._file, stderr=subprocess.DEVNULL)
        except OSError:  # without nvidia-smi, the records have no clock
            self._process = None
        return self

    def __exit__(self, *_):
        if self._process:
            self._process.terminate()
            self._process.wait()
        self._file.seek(0)
        self._lines = self._file.read().splitlines()
        self._file.close()

    def between(self, began: float, ended: float) -> dict:
        """Return {'sm_mhz': …, 'watts': …}, medians of the readings between two values of time.time(), or {}."""
        readings = [reading for reading in map(read_line, self._lines) if reading and began <= reading[0] <= ended]
        if not readings:
            return {}
        _, clocks, watts = zip(*readings, strict=True)
        return {"sm_mhz": sorted(clocks)[len(clocks) // 2], "watts": sorted(watts)[len(watts) // 2]}


def read_line(line: str) -> tuple[float, float, float] | None:
    """Parse a line of nvidia-smi as (time.time(), MHz, W); None if it is incomplete or contains [N/A]."""
    try:
        stamp, clock, watts = line.split(", ")
        return datetime.strptime(stamp, "%Y/%m/%d %H:%M:%S.%f").timestamp(), float(clock), float(watts)
    except ValueError:
        return None
