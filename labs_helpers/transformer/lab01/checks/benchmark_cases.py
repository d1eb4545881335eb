"""The practice GPUs of exercise 1, and the rounds that a benchmark runs on them, each with its exact time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labs_helpers.transformer.lab01.practice_gpu import GPU_BOUND, HOST_BOUND, UPDATE_HOST_BOUND, PracticeGPU

# The actions of a round; its time is that between [ and ].
RIGHT = {
    "forward": "wait [ forward wait ]",
    "backward": "forward wait [ backward wait ]",
    "step": "wait [ forward backward update wait ]",
}
COMPILE_US = (40_000, 15_000, 6_000, 4_000, 3_000)
# A prime number of delays, of which `runs` is a multiple: however often a round waits, each occurs equally often.
LATE_US = (23.19, 0, 7.43, 46.81, 13.07, 301.37, 61.53, 127.71, 30.97, 906.11, 82.59)


class Case(NamedTuple):
    name: str
    phases: dict
    warmup: int
    runs: int

    def __str__(self) -> str:
        return f"{self.name}, {self.warmup} + {self.runs} rounds"

    def gpu(self, late_us: tuple = ()) -> PracticeGPU:
        return PracticeGPU(**self.phases, compile_us=COMPILE_US[: self.warmup], late_us=late_us or LATE_US)

    def rounds(self, phase: str, script: str = "", late_us: tuple = ()) -> np.ndarray:
        """Return the times of all rounds of a phase, in ms, including the warm-up. The phases before it are correct."""
        gpu, every = self.gpu(late_us), self.warmup + self.runs
        for earlier in list(RIGHT)[: list(RIGHT).index(phase)]:
            play(gpu, RIGHT[earlier], every)
        return play(gpu, script or RIGHT[phase], every)

    def possible(self, phase: str) -> np.ndarray:
        """Return rows of all rounds, one row per number of waits that an answer may make before this phase and in
        each round."""
        on_time, late = self.rounds(phase, late_us=(0,)), np.array(LATE_US) / 1e3
        before, each = np.indices((len(late), len(late) - 1)).reshape(2, -1, 1)
        return on_time + late[(before + (each + 1) * np.arange(len(on_time))) % len(late)]

    def samples(self, phase: str, script: str = "") -> np.ndarray:
        """Return the times of the rounds that count."""
        return self.rounds(phase, script)[self.warmup :]


CASES = (
    Case("GPU-bound", GPU_BOUND, 3, 11),
    Case("host-bound", HOST_BOUND, 2, 22),
    Case("update host-bound", UPDATE_HOST_BOUND, 5, 11),
    # Here the samples depend on how often a round waits: any that are possible are right. No median is a round's time.
    Case("an even number of rounds", GPU_BOUND, 3, 10),
)


def play(gpu: PracticeGPU, script: str, rounds: int) -> np.ndarray:
    """Return the times of `rounds` rounds that follow `script`, in ms."""
    loss, readings = None, []
    for word in rounds * script.split():
        match word:
            case "forward":
                loss = gpu.forward()
            case "backward":
                gpu.backward(loss)
            case "update":
                gpu.update()
            case "wait":
                gpu.synchronize()
            case "[" | "]":
                readings.append(1e3 * gpu.clock())
    return np.diff(np.reshape(readings, (rounds, 2))).ravel()


def median(samples) -> np.ndarray:
    return np.median(samples, axis=-1)


def spread(samples) -> np.ndarray:
    p20, p50, p80 = np.quantile(samples, (0.2, 0.5, 0.8), axis=-1)
    return (p80 - p20) / p50
