"""A GEMM's time, predicted from the waves of its tiles, and the configuration that the prediction takes.

    ms = launch + rounds·steps·step[configuration] + waves·wave + rounds·elements·element + bytes·byte + loads·load
         + ragged·ragged, and with K in parts + rounds·join + rounds·written·write + parts·written·read

rounds: tiles one SM computes, ⌈tiles / SMs⌉, and not tiles / SMs: 2.2 cost 3; each part of a sum over K counts as a
tile. steps: ⌈K / BLOCK_K⌉, or a part's. waves: rounds over the programs that fit an SM at once, rounded up. elements:
BLOCK_M·BLOCK_N; written: those of them in rows that D has. bytes: A, B, C and D once. loads: bytes of A and B that all
steps of all tiles read, from L2 for the most part. ragged: those of them from matrices whose rows start at multiples of
16 bytes and not of 32, of which L2 reads a sector more. Every configuration has its own time of a step; the other times
are shared by all, so that a few dozen shapes tell them. Fitted to relative errors by least squares without negative
terms; what takes long beside the best of its shape counts less, because nobody chooses it.
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
COPY_MS = 5e-3  # an allowance, not measured: the host's time for one more launch, for which a GPU may have to wait


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
        self, shape: Shape, multiprocessors: int, splits: int = 1, ragged: tuple[bool, bool] | None = None
    ) -> tuple[float, tuple[float, ...]]:
        """(rounds · steps, what the shared times are multiplied by, in the order of SHARED) of (M, N, K) in elements of
        2 bytes. ragged: whether the rows of A, and of B, are; by default those of contiguous matrices."""
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
    """Numbers of parts that K may be cut into, for (M, N, K): 1, and those with which as many programs run as the GPU
    runs at once, or twice as many, rounded both ways."""
    tiles, steps = tiling.tiles(shape), -(-shape[2] // tiling.BLOCK_K)
    found = {1}
    for fill in (1, 2):
        found |= {fill * multiprocessors // tiles, -(-fill * multiprocessors // tiles)}
    return sorted(number for number in found if 1 <= number <= steps)


def ragged_rows(shape: Shape) -> tuple[bool, bool]:
    """Whether rows of contiguous A, and B, of 2-byte elements start within a sector of L2."""
    return shape[2] % SECTOR > 0, shape[1] % SECTOR > 0


class Choice(NamedTuple):
    """What `choose` found: SPLITS of K, which of A and B are copied first, and the ms predicted."""

    config: Any
    splits: int
    copied: tuple[bool, bool]
    ms: float


class Measured(NamedTuple):
    """One configuration's time at one shape."""

    config: Any
    tiling: Tiling
    shape: Shape
    ms: float
    splits: int = 1


@dataclass(frozen=True)
class TimeModel:
    """Times in ms. `steps`: configuration → (its Tiling, ms a step). `copy`: what a launch that copies takes, and a
    byte that it reads or writes; None: nothing is copied."""

    multiprocessors: int
    shared: tuple[float, ...]
    steps: dict[Any, tuple[Tiling, float]]
    copy: tuple[float, float] | None = None

    def predict(
        self, config: Hashable, shape: Shape, splits: int = 1, ragged: tuple[bool, bool] | None = None
    ) -> float:
        """The time of (M, N, K) with a configuration that was measured, in ms."""
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
        """What the least time is predicted of. parts: into how many a configuration may cut K, for a shape on so many
        SMs; by default one. unreadable: which of A and B have to be copied; ragged ones may be."""
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
        """ms that copies of A and B take."""
        M, N, K = shape
        if not any(copied) or self.copy is None:
            return 0.0
        launch, byte = self.copy
        return COPY_MS + launch + 4 * K * (M * copied[0] + N * copied[1]) * byte

    def write(self, path: Path, **about: Any) -> None:
        """To JSON; configurations are dataclasses. about: where it is from."""
        entries = [
            {"config": config.keywords(), "an_sm": tiling.an_sm, "ms": step}
            for config, (tiling, step) in self.steps.items()
        ]
        known: dict[str, Any] = {"multiprocessors": self.multiprocessors, "copy": self.copy}
        known["shared"] = dict(zip(SHARED, self.shared, strict=True))
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
    shared = tuple(known["shared"][name] for name in SHARED)
    return TimeModel(known["multiprocessors"], shared, steps, known["copy"] and tuple(known["copy"]))


def fit(measured: Iterable[Measured], multiprocessors: int, copies: Iterable[tuple[int, float]] = ()) -> TimeModel:
    """The model of what was measured on a GPU of so many SMs. copies: (bytes read and written, ms) of launches that
    copy.

    ValueError without a measurement.
    """
    import numpy

    rows = list(measured)
    if not rows:
        raise ValueError("nothing was measured that a model could be fitted to")
    tilings = {row.config: row.tiling for row in rows}
    place = {config: i for i, config in enumerate(tilings)}
    best: dict[Shape, float] = {}
    for row in rows:
        best[row.shape] = min(row.ms, best.get(row.shape, row.ms))
    A = numpy.zeros((len(rows), len(tilings) + len(SHARED)))
    for line, row in zip(A, rows, strict=True):
        own, line[len(tilings) :] = row.tiling.terms(row.shape, multiprocessors, row.splits)
        line[place[row.config]] = own
        line /= row.ms  # so that each row says: predicted over measured is 1
    x = _without_negatives(A, numpy.exp([1 - row.ms / best[row.shape] for row in rows]))
    steps = {config: (tiling, float(x[place[config]])) for config, tiling in tilings.items()}
    return TimeModel(multiprocessors, tuple(map(float, x[len(tilings) :])), steps, fit_copies(copies))


def fit_copies(copies: Iterable[tuple[int, float]]) -> tuple[float, float] | None:
    """(ms a launch, ms a byte) of (bytes, ms), as `fit` fits; None of nothing."""
    import numpy

    rows = numpy.array(list(copies))
    if not len(rows):
        return None
    launch, byte = _without_negatives(numpy.stack([1 / rows[:, 1], rows[:, 0] / rows[:, 1]], axis=1))
    return float(launch), float(byte)


def _without_negatives(A: Any, weights: Any = 1.0) -> Any:
    """x ≥ 0 with A·x ≈ 1 in least squares, each row with its weight: what comes out negative is left out until nothing
    does."""
    import numpy

    A = A * numpy.reshape(weights, (-1, 1))
    b = numpy.broadcast_to(weights, len(A))
    scale = numpy.linalg.norm(A, axis=0)
    scale[scale == 0] = 1  # nothing was split
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
