"""Pretended jobs with known times: for measuring with parts left out, for waiting ranks, and for changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

StepTime = Callable[[bool, bool, int], float]  # (communication, loading, batch) → ms


@dataclass
class Job:
    """A job whose steps take `ms`, and longer while other programs run. calls: the arguments of all measurements."""

    ms: StepTime
    seed: int
    calls: list[tuple[bool, bool, int]] = field(default_factory=list)

    def measure(self, communication: bool = True, loading: bool = True, batch: int = 1) -> list[float]:
        """Return the ms of some steps; the others' share is the same in every run of these parts."""
        if batch < 1 or batch != int(batch):
            raise ValueError(f"batch={batch}: it has to be a whole number from 1 on")
        arguments = bool(communication), bool(loading), int(batch)
        self.calls.append(arguments)
        draw = random.Random(f"{self.seed} {arguments[:2]}")
        ms = float(self.ms(*arguments))
        others = [0.0, *(draw.uniform(0.5, 9) for _ in range(draw.randint(3, 6)))]
        draw.shuffle(others)
        return [ms + other for other in others]


def all_reduce_times(
    work: Sequence[Sequence[float]], clocks: Sequence[float], transfer: float
) -> tuple[list[list[float]], list[list[float]]]:
    """Return begun[rank][step] and finished[rank][step] by each rank's own clock, in ms.

    work[rank][step]: the ms before the step's all-reduce. clocks: what each rank's clock shows at the start, of at
    least as many ranks. transfer: the ms from the last rank's arrival to the end of an all-reduce.
    """
    ends = list(accumulate(max(step) + transfer for step in zip(*work, strict=True)))
    starts = [0.0, *ends[:-1]]
    begun = [
        [clock + start + ms for start, ms in zip(starts, mine, strict=True)]
        for clock, mine in zip(clocks, work, strict=False)
    ]
    return begun, [[clock + end for end in ends] for clock in clocks[: len(work)]]


@dataclass
class ChangeableJob:
    """A job that possible changes make faster. measured: the sets that were measured.

    paths: each the ms of a sequence of operations, and the ms that each change saves in it. The paths run at the same
    time, so the longest decides. serial: the same for what runs before them.
    """

    paths: Sequence[tuple[float, Mapping[str, float]]]
    serial: tuple[float, Mapping[str, float]] = (0.0, {})
    measured: list[frozenset[str]] = field(default_factory=list)

    def ms(self, chosen: Collection[str]) -> float:
        serial, *paths = (ms - sum(map(saved.get, saved.keys() & chosen)) for ms, saved in (self.serial, *self.paths))
        return serial + max(paths)

    def measure_of(self, changes: Sequence[str]) -> Callable[[Collection[str]], float]:
        """Return `measure`, which takes a set of some of the changes."""

        def measure(chosen: Collection[str]) -> float:
            if isinstance(chosen, str):
                raise TypeError(f"measure takes a set of names, not the name {chosen!r}")
            if unknown := set(chosen) - set(changes):
                raise ValueError(f"{sorted(map(str, unknown))} is not among the changes {list(changes)}")
            self.measured.append(frozenset(chosen))
            return self.ms(self.measured[-1])

        return measure
