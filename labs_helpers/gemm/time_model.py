"""A GEMM's time, predicted from the waves of its tiles, and the configuration that the prediction takes.

    ms = launch + rounds·steps·step[configuration] + waves·wave + rounds·BLOCK_M·BLOCK_N·element + bytes·byte
         + parts·BLOCK_M·BLOCK_N·part + loads·load

rounds: tiles one SM computes, ⌈tiles / SMs⌉, and not tiles / SMs: 2.2 cost 3. steps: ⌈K / BLOCK_K⌉. waves: rounds over
the programs that fit an SM at once, rounded up. bytes: A, B, C and D once. Where a tile's sum over K is split, each of
its parts counts as a tile with that part of the steps, and the last program of a tile adds up its parts. loads:
bytes of A and B that all steps of all tiles read, from L2 for the most part. Every configuration has its own time of a
step; the other six are shared by all, so that a few dozen shapes tell them. Fitted to
relative errors by least squares without negative terms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

Shape = tuple[int, int, int]


SHARED = ("launch", "wave", "element", "byte", "part", "load")


@dataclass(frozen=True)
class Tiling:
    """What the model knows of a configuration: its blocks, and how many programs of it an SM holds."""

    BLOCK_M: int
    BLOCK_N: int
    BLOCK_K: int
    an_sm: int = 1

    def tiles(self, shape: Shape) -> int:
        """Tiles of D of (M, N, K)."""
        return -(-shape[0] // self.BLOCK_M) * -(-shape[1] // self.BLOCK_N)

    def terms(
        self, shape: Shape, multiprocessors: int, splits: int = 1, element_size: int = 2
    ) -> tuple[float, tuple[float, ...]]:
        """(rounds · steps, what the shared times are multiplied by, in the order of SHARED) of (M, N, K)."""
        M, N, K = shape
        all_steps = -(-K // self.BLOCK_K)
        elements = self.BLOCK_M * self.BLOCK_N
        moved = element_size * (M * K + K * N + 2 * M * N)
        rounds = -(-self.tiles(shape) * splits // multiprocessors)
        parts = splits * elements if splits > 1 else 0
        steps = -(-all_steps // splits)
        loads = self.tiles(shape) * splits * steps * (self.BLOCK_M + self.BLOCK_N) * self.BLOCK_K * element_size
        return rounds * steps, (1, -(-rounds // self.an_sm), rounds * elements, moved, parts, loads)


class Measured(NamedTuple):
    """One configuration's time at one shape."""

    config: Any
    tiling: Tiling
    shape: Shape
    ms: float
    splits: int = 1


@dataclass(frozen=True)
class TimeModel:
    """Times in ms. `steps`: configuration → (its Tiling, ms a step)."""

    multiprocessors: int
    shared: tuple[float, ...]
    steps: dict[Any, tuple[Tiling, float]]

    def predict(self, config: Hashable, shape: Shape, splits: int = 1) -> float:
        """The time of (M, N, K) with a configuration that was measured, in ms."""
        tiling, step = self.steps[config]
        own, others = tiling.terms(shape, self.multiprocessors, splits)
        return own * step + sum(x * ms for x, ms in zip(others, self.shared, strict=True))

    def choose(
        self, shape: Shape, splits: Callable[[Tiling, Shape, int], Iterable[int]] = lambda *_: (1,)
    ) -> tuple[Any, int, float]:
        """(configuration, splits of K, ms) of the least predicted time. splits: those that a tiling may have for a
        shape on so many SMs; by default one."""
        found = [
            (config, number, self.predict(config, shape, number))
            for config, (tiling, _) in self.steps.items()
            for number in splits(tiling, shape, self.multiprocessors)
        ]
        return min(found, key=lambda one: one[2])

    def write(self, path: Path, **about: Any) -> None:
        """To JSON; configurations are dataclasses. about: where it is from."""
        entries = [
            {"config": config.keywords(), "an_sm": tiling.an_sm, "ms": step}
            for config, (tiling, step) in self.steps.items()
        ]
        known = {"multiprocessors": self.multiprocessors, "shared": dict(zip(SHARED, self.shared, strict=True))}
        path.write_text(json.dumps(about | known | {"steps": entries}, indent=1) + "\n")


def read(path: Path, make: Any) -> TimeModel:
    """What `write` wrote; make: the configurations' class."""
    known = json.loads(path.read_text())
    steps = {}
    for entry in known["steps"]:
        config = make(**entry["config"])
        steps[config] = (
            Tiling(config.BLOCK_M, config.BLOCK_N, config.BLOCK_K, entry["an_sm"]),
            entry["ms"],
        )
    return TimeModel(known["multiprocessors"], tuple(known["shared"][name] for name in SHARED), steps)


def fit(measured: Iterable[Measured], multiprocessors: int) -> TimeModel:
    """The model of what was measured on a GPU of so many SMs.

    ValueError without a measurement.
    """
    import numpy

    rows = list(measured)
    if not rows:
        raise ValueError("nothing was measured that a model could be fitted to")
    tilings = {row.config: row.tiling for row in rows}
    place = {config: i for i, config in enumerate(tilings)}
    A = numpy.zeros((len(rows), len(tilings) + len(SHARED)))
    for line, row in zip(A, rows, strict=True):
        own, line[len(tilings) :] = row.tiling.terms(row.shape, multiprocessors, row.splits)
        line[place[row.config]] = own
        line /= row.ms  # so that each row says: predicted over measured is 1
    scale = numpy.linalg.norm(A, axis=0)
    scale[scale == 0] = 1  # nothing was split
    x = _without_negatives(A / scale) / scale
    steps = {config: (tiling, float(x[place[config]])) for config, tiling in tilings.items()}
    return TimeModel(multiprocessors, tuple(map(float, x[len(tilings) :])), steps)


def _without_negatives(A: Any) -> Any:
    """x ≥ 0 with A·x ≈ 1 in least squares: what comes out negative is left out until nothing does."""
    import numpy

    # The normal equations: there are ten times as many measurements as times to find.
    squares, products = A.T @ A, A.sum(axis=0)
    kept = numpy.arange(A.shape[1])
    while True:
        x = numpy.linalg.lstsq(squares[numpy.ix_(kept, kept)], products[kept], rcond=None)[0]
        if (x >= 0).all():
            break
        kept = numpy.delete(kept, int(numpy.argmin(x)))
    full = numpy.zeros(A.shape[1])
    full[kept] = x
    return full
