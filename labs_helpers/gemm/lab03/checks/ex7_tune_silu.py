"""Check the transfer exercise of lab 03: prune, search and remember, for SiLU(A·B + bias) at two LLaMA layers."""

import tempfile
from pathlib import Path

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.lab03.checks.asked import asking
from labs_helpers.gemm.lab03.checks.ex5_random_search import BUDGET, CHIP
from labs_helpers.gemm.lab03.checks.ranking import most_promising
from labs_helpers.gemm.lab03.checks.wrong_kernels import HALVES, NAN, ONE, ZERO, WithWrongKernels
from labs_helpers.gemm.tuning.cache import TuningCache
from labs_helpers.gemm.tuning.recorded import Recorded, measured, shapes
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET

KERNEL = "silu_matmul"
ERRORS = (
    (r"KeyError: None|ms is inf", "grid_search returns None if no result is correct; store nothing then."),
    (r"is .*, not a Config|must be real number", "cache.put takes (key, config, ms), and ms is times[config]."),
    (r"_key_of\(\) (missing|takes)", "key_of takes three numbers, as in key_of(*shape)."),
    (r"no attribute 'double'|not callable", "grid_search takes (configs, run, expected, bound, measure)."),
)


@exercise("03/7", "transfer: tune SiLU(A·B + bias)", points=30, minutes=10)
def tune_silu(student):
    layers = shapes(measured(), KERNEL)
    with tempfile.TemporaryDirectory() as folder:
        cache, benches = TuningCache(Path(folder, "tuned.json")), {shape: _bench(shape) for shape in layers}
        found = _tune("", student, benches, cache)
        for shape, bench in benches.items():
            case = "×".join(map(str, shape))
            lost = _expect_tuned(case, bench, found[shape], cache.entries().get(_key_of(*shape)))
            yield f"{case}: {found[shape]}, {lost:.1%} slower than the best, after {len(bench.timed)} measurements"

        benches = {shape: _bench(shape) for shape in layers}
        again = _tune("a second time", student, benches, cache)
        if again != found or any(bench.ran or bench.timed for bench in benches.values()):
            searched = "a shape in the cache was searched again, or got another configuration."
            raise Wrong("a second time", searched, cause="cache.get(key) comes first.")
        yield "a second call measures nothing and returns the cached configurations"

        case, cache = "every kernel is wrong", TuningCache(Path(folder, "empty.json"))
        hopeless = WithWrongKernels(measured(), KERNEL, layers[0], dict.fromkeys(grid(), HALVES))
        found = _tune(case, student, {layers[0]: hopeless}, cache)
        hopeless.expect_gate(case)
        if found != {layers[0]: None} or cache.entries():
            remembered = f"returned {found!r} and remembered {len(cache.entries())}"
            raise Wrong(case, f"{remembered}; return None and store nothing")
        yield "if no result is correct, nothing is stored"
        yield _keeps_to_another_budget_and_chip(student, layers[1], TuningCache(Path(folder, "other.json")))


def _keeps_to_another_budget_and_chip(student, shape, cache) -> str:
    """Check that the answer keeps to another chip's limits and to another budget; the times stay the H200's."""
    case, chip, bench = (
        "on an A100, with a budget of 5",
        DATASHEET["A100"],
        WithWrongKernels(measured(), KERNEL, shape, {}),
    )
    _tune(case, student, {shape: bench}, cache, chip, 5)
    if large := [config for config in bench.ran if exercises.resources(config, chip)[2] == "too large"]:
        found = f"{large[0]} was run although it is too large for this chip"
        raise Wrong(case, found, cause="your function called prune for another chip than `chip`.")
    if len(bench.timed) > 5:
        raise Wrong(case, f"{len(bench.timed)} measurements; 5 may be spent.", cause="cut the list at `budget`.")
    best = min(map(bench.time, most_promising(shape, chip)[:5]))
    if not bench.timed or min(map(bench.time, bench.timed)) > 1.02 * best:
        found = f"{len(bench.timed)} were measured, but none of them is as good as the five most promising"
        raise Wrong(case, found, cause="measure the first ones that prune keeps, which are the most promising.")
    return f"{case}: {len(bench.timed)} measured, and all of them fit that chip"


def _bench(shape) -> WithWrongKernels:
    """Return the recorded sweep with a wrong and fast result for three configurations that any good pruner keeps."""
    promising = sorted(most_promising(shape, CHIP), key=Recorded(measured(), KERNEL, shape).time)
    return WithWrongKernels(measured(), KERNEL, shape, {promising[2]: ONE, promising[3]: ZERO, promising[4]: NAN})


def _key_of(M, N, K) -> str:
    """Return the key of any M, N and K, because a wrong answer may ask for another shape."""
    return f"{KERNEL}|{M}x{N}x{K}|float16|NVIDIA H200"


def _tune(case: str, student, benches: dict, cache, chip=CHIP, budget: int = BUDGET) -> dict:
    remembered = cache.entries()
    with asking(student) as asked:
        try:
            answer = student(list(benches), lambda M, N, K: benches[M, N, K], chip, cache, _key_of, budget)
        except Exception as error:
            raise describe_error(student, error, case, ERRORS) from error
    for _, *shape, asked_chip in asked.calls:
        if asked_chip != chip:
            raise Wrong(case, "your function called prune for another chip than `chip`", cause="pass `chip` to prune.")
        if tuple(shape) not in benches:
            found = f"your function called prune for {'×'.join(map(str, shape))}, which is not among the shapes"
            raise Wrong(case, found, cause="M, N and K are swapped, or belong to another shape.")
    pruned = [benches[tuple(shape)] for _, *shape, _ in asked.calls]
    if not remembered and any(not bench.ran and not bench.timed for bench in pruned):
        cause = "bench_of(M, N, K) returns one bench per shape, but your function uses another shape's."
        raise Wrong(case, "your function called prune for a shape whose bench it never used.", cause=cause)
    if missed := set(benches) - {tuple(shape) for _, *shape, _ in asked.calls}:
        searched = [shape for shape in missed if benches[shape].ran]
        if asked.calls and searched:
            found = f"{'×'.join(map(str, searched[0]))} was searched, but prune was never called for it"
            raise Wrong(case, found, cause="the candidates were pruned for another shape; prune for each shape.")
    if not isinstance(answer, dict) or set(answer) != set(benches):
        cause = ""
        if isinstance(answer, dict) and set(answer) < set(benches):
            cause = (
                f"{len(benches) - len(answer)} of {len(benches)} shapes are missing: a return ends the loop, or the "
            )
            cause += "dict holds only shapes that were just searched, or only those with a correct result."
        found = f"returned {answer!r:.80}; return a dict of (M, N, K) → Config with every shape"
        raise Wrong(case, found, cause=cause)
    return answer


def _expect_tuned(case: str, bench, config, entry: dict | None) -> float:
    """Return how much slower `config` is than the best, as a fraction. Raises Wrong if it is too slow or not cached."""
    bench.expect_gate(case)
    if len(bench.timed) > BUDGET:
        found = f"{len(bench.timed)} measurements; {BUDGET} may be spent."
        raise Wrong(case, found, cause="the grid is not pruned, or not cut at the budget.")
    if not isinstance(config, Config):
        raise Wrong(case, f"the configuration is {config!r}, not a Config")
    if entry is None:
        cause = "cache.put(key, config, ms) is missing, or gets another shape's key."
        raise Wrong(case, "the cache holds None for this shape.", cause=cause)
    if Config(**entry["config"]) != config or entry["ms"] != bench.time(config):
        cause = "cache.put(key, config, ms) gets another shape's key or time."
        raise Wrong(case, f"the cache holds {entry!r}; {bench.time(config)} ms were measured.", cause=cause)
    lost = bench.time(config) / bench.best()[1] - 1
    if config in bench.wrong or lost > 0.02:
        found = f"{config} is {lost:.1%} slower than the best; 2% is allowed"
        if bench.timed and bench.time(config) > min(map(bench.time, bench.timed)):
            raise Wrong(case, f"{found}.", cause="a faster one was measured but not returned.")
        cause = "the candidates were pruned for another shape or chip, or the most promising were not tried first."
        raise Wrong(case, f"{found}.", cause=cause)
    return lost
