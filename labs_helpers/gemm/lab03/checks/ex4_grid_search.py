"""Check exercise 4 of lab 03: a search that times only correct configurations, on a recorded sweep."""

import itertools
import math

from triton.runtime.errors import OutOfResources

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_is_number, expect_tuple
from labs_helpers.course.verdict.returned import expect_order
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.lab03.checks.wrong_kernels import DEFECTS, HALVES, WithWrongKernels
from labs_helpers.gemm.tuning.recorded import measured
from labs_helpers.gemm.tuning.space import grid

SHAPE = (2048, 2048, 2048)


@exercise("03/4", "grid search", points=15, minutes=20, reference=exercises.grid_search)
def grid_search(student):
    yield _finds_the_best(student)
    for where in ("measurement", "run"):
        yield _keeps_what_was_measured(student, where)
    case = "every kernel is wrong"
    best, _ = _search(case, student, _bench(dict.fromkeys(grid(), HALVES)))
    if best is not None:
        cause = "min() also returns a configuration if all times are math.inf; test whether its time is finite."
        raise Wrong(case, f"best is {best}; it must be None if no result is correct", cause=cause)
    yield f"{case}: best is None"


def _bench(wrong: dict) -> WithWrongKernels:
    return WithWrongKernels(measured(), "fused_matmul", SHAPE, wrong)


class _Once:
    """Configurations as a progress bar yields them: a loop can read them only once, and they have no length."""

    def __init__(self, case: str):
        self._case, self._begun = case, False

    def __iter__(self):
        if self._begun:
            cause = "a progress bar or a generator is empty after the first loop; list(configs) keeps its elements."
            raise Wrong(self._case, "your function loops over configs twice", cause=cause)
        self._begun = True
        return iter(grid())


def _search(case: str, student, bench, run=None, measure=None) -> tuple:
    given = {"expected": bench.expected.clone(), "bound": bench.bound.clone()}
    try:
        answer = student(_Once(case), run or bench.run, *given.values(), measure or bench.measure)
    except OutOfResources as error:
        cause = "`except Exception` around run(config) catches it; it is neither a RuntimeError nor a ValueError."
        raise Wrong(case, f"run(config) raised {error!r}, which ended the search", cause=cause) from None
    for name, tensor in given.items():
        if not tensor.equal(getattr(bench, name)):
            cause = "an operator such as -= or a method whose name ends in _ works in place; compute a new tensor."
            raise Wrong(case, f"`{name}` was changed", cause=cause)
    best, times = expect_tuple(case, answer, "best", "times")
    expect_order(case, (type(best), type(times)), (Config, dict), "best", "times")
    if not isinstance(times, dict):
        raise Wrong(case, f"times is {times!r:.80}; return a dict of Config → ms")
    for config, ms in times.items():
        expect_is_number(case, f"times[{config!r}]", ms)
    return best, times


def _finds_the_best(student) -> str:
    # Some of the fastest give a wrong result, each in a different way.
    wrong = dict(zip(_bench({}).ranking()[3::3], DEFECTS, strict=False))
    case = f"{'×'.join(map(str, SHAPE))}, recorded, with {len(wrong)} wrong kernels"
    bench = _bench(wrong)
    best, times = _search(case, student, bench)
    bench.expect_gate(case, times)
    if missing := [config for config in grid() if config not in times]:
        found = f"{len(missing)} of {len(grid())} have no entry in times, beginning with {missing[0]}"
        raise Wrong(case, found, cause=_who_is_missing(missing, bench))
    for config, ms in times.items():
        expected = bench.time(config) if config in bench.right else math.inf
        if ms != expected:
            raise Wrong(case, f"times has {ms!r} ms for {config}, expected {expected}")
    if list(times) != grid():
        raise Wrong(case, "times does not keep the order of the configurations", cause=_other_order(times))
    fastest, _ = bench.best()
    if best != fastest:
        cause = "the slowest was taken." if best == max(bench.right, key=bench.time) else ""
        cause = "best is a configuration, not its time." if best == bench.time(fastest) else cause
        if best is None:
            cause = ("best is never set", "the largest is taken, and that is math.inf")
        raise Wrong(case, f"best is {best}, but {fastest} took less time", cause=cause)
    return f"{case}: {len(bench.right)} timed, {len(grid()) - len(bench.right)} not, best {best}"


def _who_is_missing(missing, bench) -> str:
    kinds = {
        "cannot run": [c for c in grid() if c not in bench.wrong and c not in bench.right],
        "is wrong": list(bench.wrong),
        "cannot run or is wrong": [c for c in grid() if c not in bench.right],
    }
    kind = next((kind for kind, configs in kinds.items() if set(configs) == set(missing)), "")
    first = grid().index(missing[0])
    if not kind and missing == grid()[first:] and {*grid()[max(0, first - 1) : first + 1]} & {*kinds["cannot run"]}:
        return "the search ends at the first configuration that cannot run; use continue, not break or return."
    return f"a configuration that {kind} must also get math.inf in times." if kind else ""


def _other_order(times) -> str:
    ms = list(times.values())
    return "the times are sorted; keep the order of the configurations." if ms == sorted(ms) else ""


def _keeps_what_was_measured(student, where: str) -> str:
    case, bench, calls = f"interrupted at the 40th {where}", _bench({}), itertools.count(1)

    def interrupted(function):
        def call(config):
            if next(calls) == 40:  # only once, so a search that continues gets its times
                raise KeyboardInterrupt
            return function(config)

        return call

    asked = {where if where == "run" else "measure": interrupted(bench.run if where == "run" else bench.measure)}
    try:
        best, times = _search(case, student, bench, **asked)
    except KeyboardInterrupt:
        cause = "`except KeyboardInterrupt:` around the loop is missing, or raises it again."
        found = "KeyboardInterrupt leaves your function, and the times measured so far are lost"
        raise Wrong(case, found, cause=cause) from None
    if len(bench.timed) > 39:
        raise Wrong(
            case,
            f"{len(bench.timed)} configurations were measured in all; an interrupt must end the search.",
            cause="KeyboardInterrupt is caught inside the loop, by a bare `except:` or by BaseException.",
        )
    kept = {config: ms for config, ms in times.items() if math.isfinite(ms)}
    fastest = min(bench.timed, key=bench.time)
    if kept != {config: bench.time(config) for config in bench.timed} or best != fastest:
        found = f"{len(kept)} times were kept, best {best}; {len(bench.timed)} were measured, the fastest {fastest}"
        cause = "after an interrupt, your function must also find the fastest one." if best is None and kept else ""
        raise Wrong(case, found, cause=cause)
    return f"{case}: {len(kept)} kept, the best of them found"
