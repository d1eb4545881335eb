"""What a search over configurations is handed: a bench with wrong kernels in it, an interrupt, and a pruner."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from labs_helpers.course.own_memory import global_names
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.tuning.recorded import out_of_resources
from labs_helpers.measure.datasheet import Datasheet

Shape = tuple[int, ...]


class Bench:
    """run, expected, bound and measure, as lab 03 asks for them. wrong: the share of configurations that give a wrong
    result, faster than any right one, or cannot run. promising: the first so many hold the fastest right one; 0: it may
    be anywhere."""

    def __init__(self, draw: np.random.Generator, configs: Sequence[Config], wrong: float, promising: int = 0):
        self.expected = torch.from_numpy(10 ** draw.uniform(-2, 3, 64))
        self.bound = 1e-3 * self.expected
        self.ran: list[Config] = []
        self.timed: list[Config] = []
        self._ms = dict(zip(configs, draw.uniform(1, 2, len(configs)).tolist(), strict=True))
        self._results: dict[Config, torch.Tensor | None] = {}
        right = int(draw.integers(promising)) if promising else -1
        for number, config in enumerate(configs):
            self._results[config] = self._right(draw)
            if number != right and draw.random() < wrong:
                self._results[config] = self._wrong(draw, int(draw.integers(5)))
                self._ms[config] /= 4
            elif promising and number >= promising:
                self._ms[config] += 2
        self._right_ones = {config for config in configs if self._within(config)}

    def _right(self, draw: np.random.Generator) -> torch.Tensor:
        """In float16: rounded, or of the numbers around those that are furthest off and within the bound, which a gate
        in float16 refuses."""
        if draw.random() < 0.5:
            return self.expected.half()
        near = (self.expected + self.bound * torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None]).half()
        off = (near.double() - self.expected).abs()
        furthest = torch.where(off <= 0.95 * self.bound, off, -1).argmax(0, keepdim=True)
        return near.gather(0, furthest)[0]

    def _wrong(self, draw: np.random.Generator, way: int) -> torch.Tensor | None:
        small, result = int(self.expected.argmin()), self._right(draw)
        if way == 0:
            return None  # it cannot run
        if way == 1:
            result[int(draw.integers(64))] = math.nan
        if way == 2:
            result[small] *= 1.25
        if way == 3:
            result = (result - 3 * self.bound).half()  # too small everywhere
        if way == 4:
            result = (result + 2.5 * self.bound * torch.tensor([1.0, -1.0]).repeat(32)).half()
        return result

    def _within(self, config: Config) -> bool:
        result = self._results[config]
        return result is not None and bool(((result - self.expected).abs() <= self.bound).all())

    def run(self, config: Config) -> torch.Tensor:
        self.ran.append(config)
        result = self._results[config]
        if result is None:
            raise out_of_resources()
        return result.clone()

    def measure(self, config: Config) -> float:
        self.timed.append(config)
        return self._ms[config]

    def timed_wrong(self) -> int:
        """How many were timed that are not right, or cannot run."""
        return len(set(self.timed) - self._right_ones)


class Watch:
    """`measure` out of a table of ms. timed: what was asked, in order."""

    def __init__(self, ms: Mapping[Config, float]):
        self._ms, self.timed = ms, list[Config]()

    def measure(self, config: Config) -> float:
        self.timed.append(config)
        return self._ms[config]


class Interrupted:
    """A bench's run and measure, one of which is interrupted at its call of this number, once."""

    def __init__(self, bench: Bench, where: str, number: int):
        self._bench, self._where, self._last, self.number = bench, where, number, 0

    def run(self, config: Config) -> torch.Tensor:
        self._count("run")
        return self._bench.run(config)

    def measure(self, config: Config) -> float:
        self._count("measure")
        return self._bench.measure(config)

    def _count(self, where: str) -> None:
        self.number += where == self._where
        if where == self._where and self.number == self._last:
            raise KeyboardInterrupt


class Pruner:
    """Inside the block, what an answer finds under the name `prune`: one that keeps what is drawn, so that it does not
    matter how well the student's own prunes. chips: that it was asked about; fewest: the least configurations."""

    def __init__(self, function: Callable[..., Any], kept: dict[Any, list[Config]]):
        self._names = global_names(function)
        self._kept, self.chips, self.fewest = kept, list[str](), 10**6

    def __enter__(self) -> Pruner:
        self._own = self._names.get("prune")
        self._names["prune"] = self._prune
        return self

    def __exit__(self, *_: object) -> None:
        self._names["prune"] = self._own

    def _prune(self, configs: Iterable[Config], M: int, N: int, K: int, chip: Datasheet) -> list[Config]:
        self.chips.append(chip.torch_name)
        self.fewest = min(self.fewest, len(list(configs)))
        return list(self._kept[M, N, K])
