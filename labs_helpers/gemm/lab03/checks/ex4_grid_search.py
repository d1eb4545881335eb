"""Exercise 4 of lab 03: a search that times what is right and nothing else, with a recorded sweep for a GPU."""

import itertools
import math

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.lab03.checks.wrong_kernels import WithWrongKernels
from labs_helpers.gemm.tuning.recorded import measured
from labs_helpers.gemm.tuning.space import grid

SHAPE = (2048, 2048, 2048)


@exercise("03/4", "grid search", points=15, minutes=20, reference=exercises.grid_search)
def grid_search(student):
    yield _finds_the_best(student)
    yield _keeps_what_was_measured(student)
    case = "every kernel is wrong"
    best, _ = _search(case, student, _bench(dict.fromkeys(grid(), 0.5)))
    if best is not None:
        raise Wrong(case, f"best is {best}; where nothing is right it is None")
    yield f"{case}: best is None"


def _bench(wrong: dict) -> WithWrongKernels:
    return WithWrongKernels(measured(), "fused_matmul", SHAPE, wrong)


def _search(case: str, student, bench, measure=None) -> tuple:
    answer = student(iter(grid()), bench.run, bench.expected, measure or bench.measure)
    best, times = expect_tuple(case, answer, "best", "times")
    if not isinstance(times, dict):
        raise Wrong(case, f"times is {times!r:.80}; a dict of Config → ms is asked for")
    return best, times


def _finds_the_best(student) -> str:
    case = "2048×2048×2048, recorded, two wrong kernels in it"
    bench = _bench({Config(64, 256, 64, 8, 8, 3): 1.2, Config(128, 128, 64, 8, 8, 4): math.nan})
    best, times = _search(case, student, bench)
    bench.expect_gate(case)
    if missing := [config for config in grid() if config not in times]:
        found = f"{len(missing)} of {len(grid())} have no entry in times, {missing[0]} first"
        raise Wrong(case, f"{found}: what cannot run or is wrong gets math.inf")
    for config, ms in times.items():
        expected = bench.time(config) if config in bench.right else math.inf
        if ms != expected:
            cause = "an absolute error was compared; results here are near 1000." if ms == math.inf else ""
            raise Wrong(case, f"times has {ms!r} ms for {config}, expected {expected}", cause=cause)
    fastest, _ = bench.best()
    if best != fastest:
        cause = "the slowest was taken." if best == max(bench.right, key=bench.time) else ""
        raise Wrong(case, f"best is {best}, but {fastest} took less time", cause=cause)
    return f"{case}: {len(bench.right)} timed, {len(grid()) - len(bench.right)} not, best {best}"


def _keeps_what_was_measured(student) -> str:
    case, bench, calls = "interrupted at the 40th measurement", _bench({}), itertools.count(1)

    def measure(config):
        if next(calls) == 40:  # once: a search that goes on gets its times
            raise KeyboardInterrupt
        return bench.measure(config)

    try:
        best, times = _search(case, student, bench, measure)
    except KeyboardInterrupt:
        raise Wrong(case, "KeyboardInterrupt went through, and what had been measured is lost") from None
    if len(bench.timed) != 39:
        raise Wrong(
            case,
            f"{len(bench.timed)} configurations were measured in all: an interrupt ends the search.",
            cause="KeyboardInterrupt is caught inside the loop (a bare `except:` does that).",
        )
    kept = {config: ms for config, ms in times.items() if math.isfinite(ms)}
    fastest = min(bench.timed, key=bench.time)
    if kept != {config: bench.time(config) for config in bench.timed} or best != fastest:
        raise Wrong(case, f"{len(kept)} times were kept, best {best}; 39 were measured, the best {fastest}")
    return f"{case}: 39 kept, the best of them found"
