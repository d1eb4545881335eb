"""Predict a GEMM's time from the waves of its tiles, and choose the configuration with the least predicted time.

    ms = launch + rounds·steps·step[configuration] + waves·wave + rounds·elements·element + bytes·byte + loads·load
         + ragged·ragged, and with K in parts + rounds·join + rounds·written·write + parts·written·read

rounds: the number of tiles that one SM computes, ⌈tiles / SMs⌉, because 2.2 tiles take as long as 3; each part of a sum
over K counts as a tile. steps: ⌈K / BLOCK_K⌉, or the steps of one part. waves: rounds over the number of programs that
fit on an SM, rounded up. elements: BLOCK_M·BLOCK_N. written: those elements that are in rows of D. bytes: A, B, C and D
once. loads: bytes of A and B that all steps of all tiles read, mostly from L2. ragged: the part of these from matrices
whose rows start at multiples of 16 bytes but not of 32, which cost L2 one more sector.

Every configuration has its own time per step. All configurations share the other times, so a few dozen shapes determine
them. The fit minimizes relative errors by least squares without negative terms. A configuration that is slow at a shape
gets a small weight there, because nobody would choose it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

Shape = tuple[int, int, int]


SHARED = ("launch", "wave", "element", "byte", "load", "ragged", "join", "write", "read")
SECTOR = 16  # elements of 2 bytes
NEITHER = (False, False)
COPY_MS = (
    5e-3  # not measured: an allowance for the host's time to launch one more kernel, for which a GPU may have to wait
)


@dataclass(frozen=True)
class Tiling:
    """A configuration as the model sees it: its blocks, and the number of its programs that fit on an SM."""

    BLOCK_M: int
    BLOCK_N: int
    BLOCK_K: int
    an_sm: int = 1

    def tiles(self, shape: Shape) -> int:
        """Return the number of tiles of D for the shape (M, N, K)."""
        return -(-shape[0] // self.BLOCK_M) * -(-shape[1] // self.BLOCK_N)

    def terms(
        self, shape: Shape, multiprocessors: int, splits: int = 1, ragged: tuple[bool, bool] | None = None
    ) -> tuple[float, tuple[float, ...]]:
        """Return (rounds · steps, factors of the times in SHARED, in order) for the shape (M, N, K) of 2-byte elements.

        ragged: whether the rows of A, and of B, are ragged; by default as in contiguous matrices.
        """
        M, N, K = shape
        of_a, of_b = ragged_rows(shape) if ragged is None else ragged
        items = self.tiles(shape) * splits
        rounds, steps = -(-items // multiprocessors), -(-K // self.BLOCK_K // splits)
        moved = 2 * (M * K + K * N + 2 * M * N)
        by_row = 2 * items * steps * self.BLOCK_K
        loads = by_row * (self.BLOCK_M + self.BLOCK_N)
        slow = by_row * (self.BLOCK_M * of_a + self.BLOCK_N * of_b)
        written = min(M, self.BLOCK_M) * self.BLOCK_N
        joined = (rounds, rounds * written, splits * written) if splits > 1 else (0, 0, 0)
        elements = rounds * self.BLOCK_M * self.BLOCK_N
        return rounds * steps, (1, -(-rounds // self.an_sm), elements, moved, loads, slow, *joined)


def worth_splitting(tiling: Tiling, shape: Shape, multiprocessors: int) -> list[int]:
    """Return the numbers of parts of K to consider for the shape (M, N, K).

    These are 1, and the numbers, rounded both ways, that give as many programs as the GPU runs at a time, or twice
    that.
    """
    tiles, steps = tiling.tiles(shape), -(-shape[2] // tiling.BLOCK_K)
    found = {1}
    for fill in (1, 2):
        found |= {fill * multiprocessors // tiles, -(-fill * multiprocessors // tiles)}
    return sorted(number for number in found if 1 <= number <= steps)


def ragged_rows(shape: Shape) -> tuple[bool, bool]:
    """Return whether rows of contiguous A, and of B, with 2-byte elements start in the middle of an L2 sector."""
    return shape[2] % SECTOR > 0, shape[1] % SECTOR > 0


class Choice(NamedTuple):
    """The result of `choose`: the configuration, SPLITS of K, whether A and B are copied, and the predicted ms."""

    config: Any
    splits: int
    copied: tuple[bool, bool]
    ms: float


class Measured(NamedTuple):
    """The measured time of one configuration at one shape."""

    config: Any
    tiling: Tiling
    shape: Shape
    ms: float
    splits: int = 1


@dataclass(frozen=True)
class TimeModel:
    """A fitted model, with times in ms.

    steps: configuration → (its Tiling, ms per step). copy: (ms per launch that copies, ms per byte that it reads or
    writes); None if the kernel makes no copies.
    """

    multiprocessors: int
    shared: tuple[float, ...]
    steps: dict[Any, tuple[Tiling, float]]
    copy: tuple[float, float] | None = None

    def predict(
        self, config: Hashable, shape: Shape, splits: int = 1, ragged: tuple[bool, bool] | None = None
    ) -> float:
        """Predict the time in ms of the shape (M, N, K) with a configuration that the fit included."""
        tiling, step = self.steps[config]
        own, others = tiling.terms(shape, self.multiprocessors, splits, ragged)
        return own * step + sum(x * ms for x, ms in zip(others, self.shared, strict=True))

    def choose(
        self,
        shape: Shape,
        parts: Callable[[Any, Shape, int], Iterable[int]] = lambda *_: (1,),
        ragged: tuple[bool, bool] | None = None,
        unreadable: tuple[bool, bool] = NEITHER,
    ) -> Choice:
        """Choose the configuration, splits and copies with the least predicted time.

        parts: function of (configuration, shape, number of SMs) that returns the splits of K to consider; by default 1.
        unreadable: whether A, and B, must be copied. Ragged operands may be copied.
        """
        given = ragged_rows(shape) if ragged is None else ragged
        may = [(True,) if must else (False, True) if slow and self.copy else (False,)
               for must, slow in zip(unreadable, given, strict=True)]  # fmt: skip
        found = []
        for copied in product(*may):
            extra = self._copying(shape, copied)
            left = tuple(slow and not gone for slow, gone in zip(given, copied, strict=True))
            found += [
                Choice(config, number, copied, self.predict(config, shape, number, left) + extra)
                for config in self.steps
                for number in parts(config, shape, self.multiprocessors)
            ]
        return min(found, key=lambda choice: choice.ms)

    def _copying(self, shape: Shape, copied: tuple[bool, ...]) -> float:
        """Predict the ms that copies of A and B take."""
        M, N, K = shape
        if not any(copied) or self.copy is None:
            return 0.0
        launch, byte = self.copy
        return COPY_MS + launch + 4 * K * (M * copied[0] + N * copied[1]) * byte

    def write(self, path: Path, **about: Any) -> None:
        """Write the model as JSON; configurations are dataclasses. about: its origin."""
        entries = [
            {"config": config.keywords(), "an_sm": tiling.an_sm, "ms": step}
            for config, (tiling, step) in self.steps.items()
        ]
        known: dict[str, Any] = {"multiprocessors": self.multiprocessors, "copy": self.copy}
        known["shared"] = dict(zip(SHARED, self.shared, strict=True))
        path.write_text(json.dumps(about | known | {"steps": entries}, indent=1) + "\n")


def read(path: Path, make: Any) -> TimeModel:
    """Read a model that `write` wrote. make: the class of its configurations."""
    known = json.loads(path.read_text())
    steps = {}
    for entry in known["steps"]:
        config = make(**entry["config"])
        steps[config] = (
            Tiling(config.BLOCK_M, config.BLOCK_N, config.BLOCK_K, entry["an_sm"]),
            entry["ms"],
        )
    shared = tuple(known["shared"][name] for name in SHARED)
    return TimeModel(known["multiprocessors"], shared, steps, known["copy"] and tuple(known["copy"]))


def fit(measured: Iterable[Measured], multiprocessors: int, copies: Iterable[tuple[int, float]] = ()) -> TimeModel:
    """Fit a model to times measured on a GPU with `multiprocessors` SMs.

    copies: (bytes read and written, ms) of launches that copy. Raises ValueError without a measurement.
    """
    import numpy

    rows = list(measured)
    if not rows:
        raise ValueError("there are no measurements to fit a model to")
    tilings = {row.config: row.tiling for row in rows}
    place = {config: i for i, config in enumerate(tilings)}
    best: dict[Shape, float] = {}
    for row in rows:
        best[row.shape] = min(row.ms, best.get(row.shape, row.ms))
    A = numpy.zeros((len(rows), len(tilings) + len(SHARED)))
    for line, row in zip(A, rows, strict=True):
        own, line[len(tilings) :] = row.tiling.terms(row.shape, multiprocessors, row.splits)
        line[place[row.config]] = own
        line /= row.ms  # so each row states that predicted over measured is 1
    x = _without_negatives(A, numpy.exp([1 - row.ms / best[row.shape] for row in rows]))
    steps = {config: (tiling, float(x[place[config]])) for config, tiling in tilings.items()}
    return TimeModel(multiprocessors, tuple(map(float, x[len(tilings) :])), steps, fit_copies(copies))


def fit_copies(copies: Iterable[tuple[int, float]]) -> tuple[float, float] | None:
    """Fit (ms per launch, ms per byte) to (bytes, ms) like `fit`; None without measurements."""
    import numpy

    rows = numpy.array(list(copies))
    if not len(rows):
        return None
    launch, byte = _without_negatives(numpy.stack([1 / rows[:, 1], rows[:, 0] / rows[:, 1]], axis=1))
    return float(launch), float(byte)


def _without_negatives(A: Any, weights: Any = 1.0) -> Any:
    """Solve A·x ≈ 1 for x ≥ 0 by weighted least squares, dropping negative unknowns until none is left."""
    import numpy

    A = A * numpy.reshape(weights, (-1, 1))
    b = numpy.broadcast_to(weights, len(A))
    scale = numpy.linalg.norm(A, axis=0)
    scale[scale == 0] = 1  # if no product was split
    A = A / scale
    # The normal equations: there are ten times as many measurements as times to find.
    squares, products = A.T @ A, A.T @ b
    kept = numpy.arange(A.shape[1])
    while True:
        x = numpy.linalg.lstsq(squares[numpy.ix_(kept, kept)], products[kept], rcond=None)[0]
        if (x >= 0).all():
            break
        kept = numpy.delete(kept, int(numpy.argmin(x)))
    full = numpy.zeros(A.shape[1])
    full[kept] = x
    return full / scale
