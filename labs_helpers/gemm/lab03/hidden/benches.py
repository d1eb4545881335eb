"""Benches for hidden inputs: some with wrong kernels, some that interrupt a search, and a pruner to replace `prune`."""

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
    """A bench with run, expected, bound and measure, as in lab 03.

    wrong: the share of configurations that cannot run, or give a wrong result faster than any correct one. promising:
    how many of the first configurations must include the fastest correct one; 0 if it may be anywhere.
    """

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
        """Return a correct result in float16: `expected` rounded, or nearby numbers as far off as the bound allows.

        A gate that computes in float16 rejects the second kind.
        """
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
        """Return how many configurations were timed that are wrong or cannot run."""
        return len(set(self.timed) - self._right_ones)


class Watch:
    """A `measure` that reads a table of ms. timed: the configurations measured so far, in order."""

    def __init__(self, ms: Mapping[Config, float]):
        self._ms, self.timed = ms, list[Config]()

    def measure(self, config: Config) -> float:
        self.timed.append(config)
        return self._ms[config]


class Interrupted:
    """A bench whose run or measure raises KeyboardInterrupt once, at call `number`."""

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
    """Replace the `prune` of an answer inside the `with` block by one that keeps what is drawn.

    The result then does not depend on the student's own `prune`. chips: those that `prune` was called for; fewest: the
    smallest number of configurations in a call.
    """

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
