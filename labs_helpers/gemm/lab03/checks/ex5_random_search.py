"""Exercise 5 of lab 03: a tenth of the measurements, drawn at random, against all of them."""

import math
import random

import numpy as np
import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.tuning.recorded import Recorded, measured, shapes
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET

BUDGET = 14  # a tenth of 144
SEEDS = (0, *range(25))  # 0 twice: it has to draw the same
CHIP = DATASHEET["H200"]


@exercise("03/5", "budget", points=10, minutes=15, reference=exercises.random_search)
def random_search(student):
    before = _global_state()
    for shape in shapes(measured()):
        case = f"{'×'.join(map(str, shape))}, {BUDGET} measurements"
        regrets = _regrets(case, student, shape)
        yield f"{case}: median regret {np.median(regrets):.1%}, worst {max(regrets):.0%}"
    if before != _global_state():
        raise Wrong(
            "",
            "the global state of the random numbers was changed.",
            cause="random.seed(seed) sets it for everyone; random.Random(seed) is a generator of your own.",
        )
    best, curve = student(grid(), 2048, 2048, 2048, CHIP, lambda config: math.inf, 5, 0)
    if best is not None or list(curve) != [math.inf] * 5:
        raise Wrong("nothing can run", f"returned {best!r}, {curve!r}; None and math.inf were expected")
    yield "the same seed draws the same, and nobody else's random numbers change"


def _global_state() -> tuple:
    return random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state().tolist()


def _regrets(case: str, student, shape) -> list[float]:
    """What each seed's best takes more than the best of all, as a fraction; raises Wrong where that is too much."""
    bench = Recorded(measured(), "fused_matmul", shape)
    regrets, draws = [], []
    for seed in SEEDS:
        bench.timed.clear()
        answer = student(grid(), *shape, CHIP, bench.measure, BUDGET, seed)
        best, curve = expect_tuple(case, answer, "best", "curve")
        _expect_curve(case, bench, best, curve)
        draws.append(tuple(bench.timed))
        regrets.append(bench.time(best) / bench.best()[1] - 1)
    if draws[0] != draws[1]:
        found = "the same seed drew different configurations."
        raise Wrong(f"{case}, seed 0 twice", found, cause="random.Random(seed) is not what draws.")
    if len(set(draws)) < len(draws) // 2:
        found = f"{len(draws) - 1} seeds drew only {len(set(draws))} different lists."
        raise Wrong(case, found, cause="the seed is not used, or the first ones are taken instead of drawn.")
    if np.median(regrets) > 0.02:
        outside = set(bench.timed) - set(exercises.prune(grid(), *shape, CHIP))
        raise Wrong(
            case,
            f"the median over {len(draws)} searches is {np.median(regrets):.1%} slower than the best; 2% is asked for.",
            cause="it draws from everything; draw from what prune keeps." if len(outside) > BUDGET // 3 else "",
        )
    return regrets


def _expect_curve(case: str, bench, best, curve) -> None:
    times = [bench.time(config) for config in bench.timed]
    if len(times) != BUDGET:
        again = "measure is called again for the best or for the curve; keep the number."
        found = f"{len(times)} measurements were made; {BUDGET} may be spent"
        raise Wrong(case, found, cause=again if len(times) > BUDGET else "")
    if len(set(bench.timed)) < len(times):
        cause = "random.choice draws with replacement; sample does not."
        raise Wrong(case, "a configuration was measured twice.", cause=cause)
    if best not in bench.timed or bench.time(best) != min(times):
        raise Wrong(case, f"best is {best!r}, but {min(bench.timed, key=bench.time)} was the fastest measured")
    if list(curve) != np.minimum.accumulate(times).tolist():
        cause = "it holds every time as it was measured." if list(curve) == times else ""
        raise Wrong(case, "curve is not the fastest time so far, after each measurement", cause=cause)
