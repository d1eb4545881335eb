"""Check exercise 5 of lab 03: a search that draws a tenth of the measurements at random."""

import math

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.course.own_memory import random_state
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.returned import expect_order
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.lab03.checks.asked import asking
from labs_helpers.gemm.lab03.checks.ranking import most_promising
from labs_helpers.gemm.tuning.recorded import Recorded, measured, shapes
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET

BUDGET = 14  # a tenth of 144
SEEDS = (0, *range(25))  # seed 0 twice, because it must draw the same configurations
CHIP = DATASHEET["H200"]


@exercise("03/5", "budget", points=10, minutes=15, reference=exercises.random_search)
def random_search(student):
    before = random_state(student)
    for shape in shapes(measured()):
        case = f"{'×'.join(map(str, shape))}, {BUDGET} measurements"
        regrets = _regrets(case, student, shape)
        yield f"{case}: median regret {np.median(regrets):.1%}, worst {max(regrets):.0%}"
    if before != random_state(student):
        raise Wrong(
            "",
            "your function changed the global state of the random numbers.",
            cause="random.seed(seed) sets it for everyone; random.Random(seed) creates your own generator.",
        )
    elsewhere = DATASHEET["A100"]
    with asking(student) as asked:
        answer = student(grid(), 2048, 1024, 512, elsewhere, lambda config: math.inf, 5, 0)
    asked.expect("on an A100", 2048, 1024, 512, elsewhere)
    best, curve = expect_tuple("nothing can run", answer, "best", "curve")
    if best is not None or list(curve) != [math.inf] * 5:
        cause = "best is set although no time is finite." if best is not None else ""
        found = f"returned {best!r}, {curve!r}; expected None and 5 times math.inf"
        raise Wrong("nothing can run", found, cause=cause)
    yield "the same seed draws the same configurations, and the global random state stays unchanged"


def _regrets(case: str, student, shape) -> list[float]:
    """Return the regret of each seed's best configuration, as a fraction. Raises Wrong if the draws break the rules.

    The check does not limit the regrets, which depend on the draw and on the student's own prune.
    """
    bench = Recorded(measured(), "fused_matmul", shape)
    regrets, draws = [], []
    with asking(student) as asked:
        for seed in SEEDS:
            bench.timed.clear()
            answer = student(grid(), *shape, CHIP, bench.measure, BUDGET, seed)
            best, curve = expect_tuple(case, answer, "best", "curve")
            expect_order(case, (type(best), type(curve)), (Config, list), "best", "curve")
            asked.expect(case, *shape, CHIP, given=len(grid()))
            candidates = asked.kept or most_promising(shape, CHIP)
            _expect_drawn(case, bench, candidates)
            _expect_curve(case, bench, best, curve)
            draws.append(tuple(bench.timed))
            regrets.append(bench.time(best) / bench.best()[1] - 1)
    if draws[0] != draws[1]:
        found = "the same seed drew different configurations."
        raise Wrong(f"{case}, seed 0 twice", found, cause="draw with random.Random(seed).")
    sets = {frozenset(draw) for draw in draws}
    if len(candidates) > BUDGET and len(sets) == 1:
        found = f"{len(draws) - 1} seeds drew the same {BUDGET} configurations, of {len(candidates)}"
        first = "the first ones are taken instead of drawn" if sets == {frozenset(candidates[:BUDGET])} else ""
        same = "the seed is not used" if len(set(draws)) == 1 and not first else ""
        raise Wrong(case, f"{found}.", cause=first or same)
    return regrets


def _expect_drawn(case: str, bench, candidates) -> None:
    """Raise Wrong if the wrong number of configurations was measured, or one twice, or one that prune drops."""
    timed, may = bench.timed, min(BUDGET, len(candidates))
    if len(timed) > may and len(set(timed)) < len(timed):
        found = f"{len(timed)} measurements were made, {len(timed) - len(set(timed))} of them again; {may} may be spent"
        raise Wrong(case, found, cause="measure is called again for the best or for the curve; keep the number.")
    if len(timed) != may:
        every = len(timed) in (len(candidates), len(grid()))
        cause = "`budget` says how many are drawn; here all were measured." if every and len(timed) > may else ""
        cause = "one too few is drawn; spend `budget` measurements." if len(timed) == may - 1 else cause
        raise Wrong(case, f"{len(timed)} measurements were made; {may} may be spent", cause=cause)
    if len(set(timed)) < len(timed):
        cause = "choice and choices draw with replacement; sample does not."
        raise Wrong(case, "a configuration was measured twice.", cause=cause)
    if outside := [config for config in timed if config not in candidates]:
        found = f"{outside[0]} was measured although prune drops it, like {len(outside)} of {len(timed)}"
        raise Wrong(case, found, cause="your function draws from everything; draw from the configurations prune keeps.")


def _expect_curve(case: str, bench, best, curve) -> None:
    times = [bench.time(config) for config in bench.timed]
    if best not in bench.timed or bench.time(best) != min(times):
        fastest = min(bench.timed, key=bench.time)
        cause = ""
        if best is None:
            cause = "best is never set; a shorter time is better, and math.inf is larger than every time."
        elif best == min(times):
            cause = "best is a configuration, not its time."
        elif best == bench.timed[-1]:
            cause = "it is the last one measured."
        elif best == bench.timed[0]:
            cause = "it is the first one measured."
        elif best == max(bench.timed, key=bench.time):
            cause = "it is the slowest."
        raise Wrong(case, f"best is {best!r}, but {fastest} was the fastest measured", cause=cause)
    right = np.minimum.accumulate(times).tolist()
    if list(curve) != right:
        causes = {
            "it holds every time as it was measured.": times,
            "update the fastest time before you append it to the curve.": _late(times),
            "it is the slowest so far.": np.maximum.accumulate(times).tolist(),
            "it has one entry per improvement instead of one per measurement.": list(dict.fromkeys(right)),
            "it holds configurations, not times.": [bench.timed[times.index(ms)] for ms in right],
            "it lacks the first entry.": right[1:],
        }
        cause = next((cause for cause, mistaken in causes.items() if list(curve) == mistaken), "")
        if sorted(curve, key=str) in (sorted(times, key=str), sorted(right, key=str)):
            cause = cause or "it is sorted; keep the order of the measurements."
        raise Wrong(case, "curve is not the fastest time so far, after each measurement", cause=cause)


def _late(times) -> list[float]:
    return [math.inf, *np.minimum.accumulate(times).tolist()[:-1]]
