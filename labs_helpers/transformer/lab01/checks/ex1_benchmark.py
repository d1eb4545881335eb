"""Exercise 1 of lab 01: a training step timed on a practice GPU, where every time is exact, and once on a CPU."""

import statistics
import time
from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np
import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Candidates, Wrong, describe_error, likely
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.practice_gpu import GPU_BOUND, HOST_BOUND, UPDATE_HOST_BOUND, PracticeGPU
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.train import adamw, next_token_loss

# What a round does; its time is what passes between [ and ].
RIGHT = {
    "forward": "wait [ forward wait ]",
    "backward": "forward wait [ backward wait ]",
    "step": "wait [ forward backward update wait ]",
}
STOPPED = "the clock stops while the GPU still works: synchronize() before the second reading"
STARTED = "work that was queued earlier is counted: synchronize() before the first reading"
WAITS = "it waits between the phases, and after each wait the GPU waits for the next launch"
FEWER = "fewer than `runs` rounds count"
NO_BACKWARD = "backward is not in it, and update without gradients does nothing"
MISTAKES = {  # phase → cause → what a round may do then
    "forward": {
        STOPPED: "wait [ forward ]",
        STARTED: "[ forward wait ] backward | [ forward wait ] backward update | [ forward wait ] backward wait update",
        "backward is timed with it": "wait [ forward backward wait ] | wait [ forward wait backward wait ]",
        "a whole step was timed": RIGHT["step"],
    },
    "backward": {
        STOPPED: "forward wait [ backward ]",
        STARTED: "forward [ backward wait ]",
        "forward is timed with it": "wait [ forward backward wait ] | wait [ forward wait backward wait ]",
        "update is timed with it": "forward wait [ backward update wait ]",
        "a whole step was timed": RIGHT["step"],
    },
    "step": {
        STOPPED: "wait [ forward backward update ]",
        WAITS: "wait [ forward wait backward wait update wait ] | wait [ forward wait backward update wait ] | "
        "wait [ forward backward wait update wait ]",
        "forward is run twice in it": "wait [ forward forward backward update wait ]",
        "forward is not timed": "forward wait [ backward update wait ] | forward [ backward update wait ]",
        "update is not in it": "wait [ forward backward wait ] | wait [ forward wait backward wait ]",
        "update comes before backward": "wait [ forward update backward wait ]",
        NO_BACKWARD: "wait [ forward update wait ]",
    },
}
COMPILE_US = (40_000, 15_000, 6_000, 4_000, 3_000)
# A prime number of them, and `runs` a multiple of it: however often a round waits, the samples hold each equally often.
LATE_US = (23.19, 0, 7.43, 46.81, 13.07, 301.37, 61.53, 127.71, 30.97, 906.11, 82.59)


class Case(NamedTuple):
    name: str
    phases: dict
    warmup: int
    runs: int

    def __str__(self) -> str:
        return f"{self.name}, {self.warmup} + {self.runs} rounds"

    def gpu(self, late_us: tuple = LATE_US) -> PracticeGPU:
        return PracticeGPU(**self.phases, compile_us=COMPILE_US[: self.warmup], late_us=late_us)

    def rounds(self, phase: str, script: str = "", late_us: tuple = LATE_US) -> np.ndarray:
        """The times of all rounds of a phase, in ms, those of the warm-up too. The phases before it are right."""
        gpu, every = self.gpu(late_us), self.warmup + self.runs
        for earlier in list(RIGHT)[: list(RIGHT).index(phase)]:
            play(gpu, RIGHT[earlier], every)
        return play(gpu, script or RIGHT[phase], every)

    def possible(self, phase: str) -> np.ndarray:
        """In each row all rounds, however often an answer waits before this phase and in each round of it."""
        on_time, late = self.rounds(phase, late_us=(0,)), np.array(LATE_US) / 1e3
        before, each = np.indices((len(late), len(late) - 1)).reshape(2, -1, 1)
        return on_time + late[(before + (each + 1) * np.arange(len(on_time))) % len(late)]

    def samples(self, phase: str, script: str = "") -> np.ndarray:
        """The times of those that count."""
        return self.rounds(phase, script)[self.warmup :]


CASES = (
    Case("GPU-bound", GPU_BOUND, 3, 11),
    Case("host-bound", HOST_BOUND, 2, 22),
    Case("update host-bound", UPDATE_HOST_BOUND, 5, 11),
)


@exercise("01/1", "benchmark", points=15, minutes=20, reference=exercises.benchmark)
def benchmark(student):
    for case in CASES:
        gpu = case.gpu()
        answer = _answer(f"{case}", student, gpu, gpu.synchronize, gpu.clock, case.warmup, case.runs)
        if not gpu.queued_us:
            raise Wrong(f"{case}", "clock() was never called", cause="another clock was read than the one handed over")
        for phase, found in answer.items():
            _expect_pair(case, phase, found, any(gpu.queued_us))
        yield f"{case}: " + ", ".join(f"{phase} {found[0]:.3f} ms" for phase, found in answer.items())
    yield _on_this_cpu(student)


def play(gpu: PracticeGPU, script: str, rounds: int) -> np.ndarray:
    """The times of `rounds` rounds that do what `script` says, in ms."""
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


def _answer(case: str, student, *arguments) -> dict:
    """Phase → array of median and spread, in RIGHT's order."""
    try:
        answer = student(*arguments)
    except RuntimeError as error:
        if "a second time" not in str(error):
            raise
        cause = "a loss goes backward once: each backward needs a forward of its own, which is not timed"
        raise Wrong(case, describe_error(student, error).found, cause=cause) from None
    if not isinstance(answer, dict) or not answer.keys() >= RIGHT.keys():
        raise Wrong(case, f"returned {answer!r:.80}; a dict with the keys {', '.join(map(repr, RIGHT))} is asked for")
    try:
        pairs = {phase: np.asarray(answer[phase], dtype=float) for phase in RIGHT}
    except (TypeError, ValueError):
        pairs = {}
    if any(np.shape(pairs.get(phase)) != (2,) for phase in RIGHT):
        raise Wrong(case, f"returned {answer!r:.200}; of each phase (median, spread) is asked for, two numbers")
    return pairs


def _expect_pair(case: Case, phase: str, found: np.ndarray, busy: bool) -> None:
    """Raises Wrong unless both are what the practice GPU's clock says. busy: the GPU ever was when it was read."""
    samples = case.samples(phase)
    parts = (("median", median, median_causes), ("spread", spread, spread_causes))
    for value, (name, of, causes) in zip(found, parts, strict=True):
        if not same(value, of(samples)):
            told = f"{phase}'s {name} is {value:.6g}, expected {of(samples):.6g}"
            advice = "follow a round along a PracticeGPU's timeline(): what is queued when the clock is read?"
            fitting = likely(causes(case, phase, found, busy), lambda answers, value=value: same(value, answers).any())
            raise Wrong(f"{case}", told, cause=fitting, advice=advice)


def same(found: float, answers) -> np.ndarray:
    """Which of `answers` are `found`, up to the rounding errors of float32."""
    return np.isclose(found, answers, rtol=2e-5, atol=0)


def median_causes(case: Case, phase: str, found: np.ndarray, busy: bool) -> Candidates:
    samples = case.samples(phase)
    yield "the mean was taken: one slow round moves it, but not the median", samples.mean()
    yield "the fastest round was taken, not the median", samples.min()
    yield "the slowest round was taken, not the median", samples.max()
    yield "it is the sum of all rounds", samples.sum()
    yield "it is in seconds, not in ms", median(samples) / 1e3
    yield "it is in µs, not in ms", median(samples) * 1e3
    yield "it is the spread, which comes second", spread(samples)
    for cause, scripts in MISTAKES[phase].items():
        yield cause, [median(case.samples(phase, script)) for script in scripts.split("|")]
    for cause, choices in chosen_rounds(case, phase, busy):
        medians, spreads = joined(median, choices), joined(spread, choices)
        yield cause, medians[same(found[1], spreads)]
        yield f"{cause}; and the mean was taken", joined(partial(np.mean, axis=-1), choices)
    ends = [np.cumsum(case.possible(phase)[:, k:], axis=-1)[:, -case.runs :] for k in (0, case.warmup)]
    yield "the clock is started once, not in each round", joined(median, ends)
    alone = {part: median(case.samples(part)) for part in ("forward", "backward")}
    both = median(case.samples("backward", "wait [ forward backward wait ]"))
    if phase == "forward":
        yield "it is backward's", alone["backward"]
        at_once = "wait [ " + case.runs * "forward " + "wait ]"
        yield "all rounds were timed at once: without waits they overlap", case.samples(phase, at_once) / case.runs
    elif phase == "backward":
        yield "it is forward's", alone["forward"]
        yield "it is a difference, forward and backward less forward: time backward by itself", both - alone["forward"]
    else:
        update = median(case.samples(phase, "forward backward wait [ update wait ]"))
        apart = "it is the sum of phases timed apart; a step launches the next while the GPU still works on one"
        yield apart, [sum(alone.values()) + update, both + update]
        yield "it is the sum of forward and backward, without update", sum(alone.values())


def spread_causes(case: Case, phase: str, found: np.ndarray, busy: bool) -> Candidates:
    samples = case.samples(phase)
    p20, p50, p80 = np.quantile(samples, (0.2, 0.5, 0.8))
    others = [np.quantile(samples, 1 - low) - np.quantile(samples, low) for low in (0.05, 0.1, 0.25)]
    low, high = np.percentile(samples, (0.2, 0.8))
    first, *_, last = statistics.quantiles(samples, n=5)
    yield "it is not divided by the median", (p80 - p20) * np.array([1e-3, 1, 1e3])
    yield "the percentiles and the median are in different units", (p80 - p20) / p50 * np.array([1e-3, 1e3])
    yield "it is a share, not percent", 100 * (p80 - p20) / p50
    yield "it is the 80th percentile minus the 20th, not the other way round", (p20 - p80) / p50
    yield "it is slowest minus fastest: one outlier decides that", np.ptp(samples) / np.array([1, p50])
    yield (
        "it is the distance of other percentiles than the 20th and the 80th",
        [width / by for width in others for by in (1, p50)],
    )
    yield "numpy.quantile takes 0.2 and 0.8, numpy.percentile 20 and 80", (high - low) / p50
    yield "statistics.quantiles has another rule than numpy.quantile", (last - first) / p50
    yield "it is the standard deviation", [samples.std(ddof=k) / by for k in (0, 1) for by in (1, p50, samples.mean())]
    yield "it is divided by the mean, not the median", (p80 - p20) / samples.mean()
    yield "it goes from the median to one side only", np.array([p80 - p50, p50 - p20]) / p50
    yield "it is halved", (p80 - p20) / p50 / 2
    yield "it is a quotient of the percentiles, not their distance", [p80 / p20, p80 / p20 - 1]
    for cause, choices in chosen_rounds(case, phase, busy):
        medians, spreads = joined(median, choices), joined(spread, choices)
        yield cause, (spreads * medians / p50)[same(p50, medians) | (cause != FEWER)]


def chosen_rounds(case: Case, phase: str, busy: bool):
    """(cause, matrices of rounds, of which each row's may be those that count then)."""
    every, warmup, runs = case.possible(phase), case.warmup, case.runs
    if busy:  # the first round may have waited for the warm-up's
        yield STARTED, [every[:, warmup - 1 :][:, :runs]]
    else:
        warm = [every[:, k:stop] for k in range(warmup) for stop in (k + runs, None)]
        yield "rounds of the warm-up count, in which functions are still compiled: each phase has its own", warm
    parts = (slice(warmup, warmup + 9), slice(warmup, -1), slice(2 * warmup, None), slice(warmup, runs))
    yield FEWER, [every[:, part] for part in parts]


def joined(summary, choices: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([summary(rounds) for rounds in choices])


class TinyModel:
    """A training step of the smallest model, as exercise 1 takes it."""

    def __init__(self):
        with torch.random.fork_rng(devices=[]):
            self.model = Transformer(SIZES["tiny"])
        self.optimizer, self.tokens = adamw(self.model, 1e-3), torch.arange(17)[None]

    def forward(self):
        return next_token_loss(self.model(self.tokens[:, :-1]), self.tokens[:, 1:])

    def backward(self, loss):
        loss.backward()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()


def _on_this_cpu(student) -> str:
    case, threads = "SIZES['tiny'] on this CPU, 1 + 3 rounds", torch.get_num_threads()
    torch.set_num_threads(1)  # for work this small starting others takes longer than they save
    try:
        answer = _answer(case, student, TinyModel(), lambda: None, time.perf_counter, 1, 3)
    finally:
        torch.set_num_threads(threads)
    if not all(0 <= value < inf for found in answer.values() for value in found):
        raise Wrong(case, f"returned {answer}; times and spreads are finite, and not negative")
    return f"{case}: " + ", ".join(f"{phase} {found[0]:.1f} ms" for phase, found in answer.items())
