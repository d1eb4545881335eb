"""Measure what each instrument costs: how long the healthy job's steps take while it watches them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from labs_helpers.clinic.training import Training
from labs_helpers.communication.interface import Communication
from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.measure.race import collected_between, in_turns, record_of, slowest, timings, wait

NOTHING, RECORDER = "nothing", "flight recorder"
RANKS = 2
STARTS = 6  # of the ranks, because the flight recorder is on or off for the whole life of a process


class Timed(Training):
    """The healthy job; `ends` has the end of each step, by perf_counter."""

    def __init__(self, group: Communication, seed: int) -> None:
        super().__init__(group, seed)
        self.ends = list[float]()

    def step(self) -> None:
        super().step()
        wait(self.device)
        self.ends.append(perf_counter())


def costs(rounds: int = 5) -> list[dict[str, Any]]:
    """Return one record per instrument, with the times of a step that it watches, on the slowest rank.

    The ranks start several times, in turns with and without the flight recorder; those without it also try each other
    instrument, in `rounds` turns.
    """
    samples: list[dict[str, list[float]]] = [{} for _ in range(RANKS)]
    for number in range(STARTS):
        recorder = number % 2 == 1
        env = {"TORCH_FR_BUFFER_SIZE": "2000" if recorder else "0"}
        found = run_on_ranks(_on_rank, RANKS, rounds, recorder, timeout=600, env=env)
        for mine, new in zip(samples, found, strict=True):
            for name, seconds in new.items():
                mine.setdefault(name, []).extend(seconds)
    return [
        {"kind": "cost", "instrument": name} | record_of(slowest(timings(mine[name]) for mine in samples))
        for name in samples[0]
    ]


def _on_rank(comm: Any, rounds: int, recorder: bool) -> dict[str, list[float]]:
    from labs_helpers.clinic.examine import INSTRUMENTS, STEPS
    from labs_helpers.communication.torch_distributed import join

    job = Timed(join(comm), seed=1)
    watched: dict[str, Callable[[Training], object]] = {RECORDER if recorder else NOTHING: lambda job: job.run(STEPS)}
    if not recorder:
        watched |= INSTRUMENTS

    def seconds(instrument: Callable[[Training], object]) -> float:
        """Return the mean time from one end of a step to the next, after the first that the instrument sees."""
        instrument(job)
        return (job.ends[-1] - job.ends[-STEPS]) / (STEPS - 1)

    job.run(STEPS)
    with collected_between() as collect:
        return in_turns({name: partial(seconds, one) for name, one in watched.items()}, rounds, collect)
