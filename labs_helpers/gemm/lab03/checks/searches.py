"""What proves the searches of lab 03 right, with the recorded sweep as the oracle."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.tuning.recorded import Recorded, measured, shapes
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET

BUDGET = 14  # a tenth of 144
SEEDS = range(25)


class Planted(Recorded):
    """A recorded sweep in which some configurations give a wrong result in less time than the best takes.

    wrong: Config → what is wrong with its result: a factor, or NaN. Results are near `scale`.
    """

    def __init__(self, frame, kernel, shape, wrong: dict, scale: float = 1000.0):
        super().__init__(frame, kernel, shape)
        self.wrong, self.expected = wrong, scale * self.expected
        self.right: list[Config] = []  # what ran and was right
        self.fastest = min(super(Planted, self).time(config) for config in self.rows)

    def run(self, config):
        result = super().run(config)
        if config in self.wrong:
            result = result.clone()
            result[3:6] *= self.wrong[config]
        else:
            self.right.append(config)
        return result

    def time(self, config):
        return 0.5 * self.fastest if config in self.wrong else super().time(config)

    def best(self):
        config = min((c for c in grid() if c not in self.wrong), key=self.time)
        return config, self.time(config)

    def expect_gate(self, case: str) -> None:
        """Raises Wrong where something was timed that had not run, or was not right, or was timed twice."""
        for config in self.timed:
            if config not in self.ran:
                raise Wrong(
                    case,
                    f"{config} was timed although its result was never looked at.\n"
                    "Likely cause: run(config) and the comparison come before measure(config).",
                )
            if config in self.wrong:
                kind = "NaN" if math.isnan(self.wrong[config]) else "wrong"
                why = (
                    "every comparison with NaN is False: ask whether the error is below the tolerance, not whether "
                    "it is above"
                    if kind == "NaN"
                    else "its error is not compared, or not as a share of ‖expected‖"
                )
                raise Wrong(
                    case,
                    f"{config} was timed, and its result is {kind}. The planted kernel does half the "
                    f"work in half the time.\nLikely cause: {why}.",
                )
            if config not in self.right:
                raise Wrong(case, f"{config} cannot run, and was timed")
        if len(set(self.timed)) != len(self.timed):
            raise Wrong(case, "a configuration was timed twice; one measurement each")


@exercise("03/4", "grid search", points=15, minutes=20, reference=exercises.grid_search)
def grid_search(student):
    frame, everything = measured(), grid()
    shape = (2048, 2048, 2048)
    wrong = {Config(64, 256, 64, 8, 8, 3): 1.2, Config(128, 128, 64, 8, 8, 4): math.nan}
    case = "2048×2048×2048, recorded, two wrong kernels planted"
    bench = Planted(frame, "fused_matmul", shape, wrong)
    best, times = _searched(case, student(iter(everything), bench.run, bench.expected, bench.measure))
    bench.expect_gate(case)
    finite = {config for config, ms in times.items() if math.isfinite(ms)}
    if missing := set(bench.right) - finite:
        raise Wrong(
            case,
            f"{len(missing)} configurations were right and have no time, {min(missing, key=str)} among "
            "them.\nLikely cause: an absolute error was compared; results here are near 1000.",
        )
    _expect_all(case, times, everything, bench)
    if best != bench.best()[0]:
        raise Wrong(
            case,
            f"best is {best}, but {bench.best()[0]} took less time"
            + (".\nLikely cause: the slowest was taken." if best == max(finite, key=bench.time) else ""),
        )
    yield f"{case}: {len(finite)} timed, {len(everything) - len(finite)} not, best {best}"
    case = "interrupted at the 40th measurement"
    bench = Planted(frame, "fused_matmul", shape, {})
    try:
        best, times = _searched(case, student(iter(everything), bench.run, bench.expected, _interrupts(bench, 40)))
    except KeyboardInterrupt:
        raise Wrong(case, "KeyboardInterrupt went through, and what had been measured is lost") from None
    kept = {config: ms for config, ms in times.items() if math.isfinite(ms)}
    if len(bench.timed) != 39:
        raise Wrong(
            case,
            f"{len(bench.timed)} configurations were measured in all: an interrupt ends the search.\n"
            "Likely cause: KeyboardInterrupt is caught inside the loop (a bare `except:` does that).",
        )
    if kept != {config: bench.time(config) for config in bench.timed} or best != min(kept, key=kept.get):
        raise Wrong(
            case,
            f"{len(kept)} times were kept, best {best}; 39 were measured, the best {min(bench.timed, key=bench.time)}",
        )
    yield f"{case}: 39 kept, the best of them found"
    case = "every kernel is wrong"
    bench = Planted(frame, "fused_matmul", shape, dict.fromkeys(everything, 0.5))
    best, times = _searched(case, student(iter(everything), bench.run, bench.expected, bench.measure))
    if best is not None:
        raise Wrong(case, f"best is {best}; where nothing is right it is None")
    yield f"{case}: best is None"


def _searched(case: str, answer):
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)):
        raise Wrong(case, f"returned {answer!r:.80}; (best, times) is asked for")
    return answer


def _interrupts(bench, at: int):
    """`bench.measure` that raises KeyboardInterrupt the `at`-th time, and then no more."""
    calls = itertools.count(1)

    def measure(config):
        if next(calls) == at:
            raise KeyboardInterrupt
        return bench.measure(config)

    return measure


def _expect_all(case: str, times: dict, everything, bench) -> None:
    if missing := [config for config in everything if config not in times]:
        raise Wrong(
            case,
            f"{len(missing)} of {len(everything)} have no entry in times, {missing[0]} first: what "
            "cannot run or is wrong gets math.inf",
        )
    for config, ms in times.items():
        expected = bench.time(config) if config in bench.right else math.inf
        if ms != expected:
            raise Wrong(case, f"times has {ms!r} ms for {config}, expected {expected}")


@exercise("03/5", "budget", points=10, minutes=15, reference=exercises.random_search)
def random_search(student):
    frame, chip = measured(), DATASHEET["H200"]
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state().tolist()
    for shape in shapes(frame):
        case = f"{'×'.join(map(str, shape))}, {BUDGET} measurements"
        bench = Recorded(frame, "fused_matmul", shape)
        regrets, draws = [], set()
        for seed in SEEDS:
            bench.timed.clear()
            best, curve = _budgeted(case, student(grid(), *shape, chip, bench.measure, BUDGET, seed))
            _expect_curve(case, bench, best, curve)
            draws.add(tuple(bench.timed))
            regrets.append(bench.time(best) / bench.best()[1] - 1)
        if len(draws) < len(SEEDS) // 2:
            raise Wrong(
                case,
                f"{len(SEEDS)} seeds drew only {len(draws)} different lists.\n"
                "Likely cause: the seed is not used, or the first ones are taken instead of drawn.",
            )
        middle = float(np.median(regrets))
        if middle > 0.02:
            _expect_seeded(student, frame, chip)  # else it is chance which of the two shows
            outside = set(bench.timed) - set(exercises.prune(grid(), *shape, chip))
            raise Wrong(
                case,
                f"the median over {len(SEEDS)} seeds is {middle:.1%} slower than the best; 2% is asked "
                "for."
                + (
                    "\nLikely cause: it draws from everything; draw from what prune keeps."
                    if len(outside) > BUDGET // 3
                    else ""
                ),
            )
        yield f"{case}: median regret {middle:.1%}, worst {max(regrets):.0%}"
    _expect_seeded(student, frame, chip)
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state().tolist()
    if before != after:
        raise Wrong(
            "",
            "the global state of the random numbers was changed.\nLikely cause: random.seed(seed) sets it "
            "for everyone; random.Random(seed) is a generator of your own.",
        )
    best, curve = student(grid(), 2048, 2048, 2048, chip, lambda config: math.inf, 5, 0)
    if best is not None or list(curve) != [math.inf] * 5:
        raise Wrong("nothing can run", f"returned {best!r}, {curve!r}; None and math.inf were expected")
    yield "the same seed draws the same, and nobody else's random numbers change"


def _expect_seeded(student, frame, chip) -> None:
    drawn = [_drawn(student, frame, chip) for _ in range(2)]
    if drawn[0] != drawn[1]:
        raise Wrong(
            "seed 5, twice",
            "the same seed drew different configurations.\nLikely cause: random.Random(seed) is not what draws.",
        )


def _drawn(student, frame, chip) -> list:
    bench = Recorded(frame, "fused_matmul", (2048, 2048, 2048))
    student(grid(), 2048, 2048, 2048, chip, bench.measure, BUDGET, 5)
    return bench.timed


def _budgeted(case: str, answer):
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise Wrong(case, f"returned {answer!r:.80}; (best, curve) is asked for")
    return answer


def _expect_curve(case: str, bench, best, curve) -> None:
    times = [bench.time(config) for config in bench.timed]
    if len(times) > BUDGET:
        raise Wrong(
            case,
            f"{len(times)} measurements were made.\n"
            "Likely cause: measure is called again for the best or for the curve; keep the number.",
        )
    if len(set(bench.timed)) < len(times):
        raise Wrong(
            case,
            "a configuration was measured twice.\nLikely cause: random.choice draws with replacement; sample does not.",
        )
    if len(times) < BUDGET:
        raise Wrong(case, f"only {len(times)} measurements were made; {BUDGET} may be spent")
    if best not in bench.timed or bench.time(best) != min(times):
        raise Wrong(case, f"best is {best!r}, but {min(bench.timed, key=bench.time)} was the fastest measured")
    if list(curve) != np.minimum.accumulate(times).tolist():
        raise Wrong(
            case,
            "curve is not the fastest time so far, after each measurement"
            + (".\nLikely cause: it holds every time as it was measured." if list(curve) == times else ""),
        )
