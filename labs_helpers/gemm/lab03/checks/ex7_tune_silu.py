"""The transfer exercise of lab 03: prune, search and remember, for SiLU(A·B + bias) at two layers of a LLaMA."""

import math
import tempfile
from pathlib import Path

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.lab03.checks.ex5_random_search import BUDGET, CHIP
from labs_helpers.gemm.lab03.checks.wrong_kernels import WithWrongKernels
from labs_helpers.gemm.tuning.cache import TuningCache
from labs_helpers.gemm.tuning.recorded import Recorded, measured, shapes
from labs_helpers.gemm.tuning.space import grid

KERNEL = "silu_matmul"


@exercise("03/7", "transfer: tune SiLU(A·B + bias)", points=30, minutes=10)
def tune_silu(student):
    layers = shapes(measured(), KERNEL)
    with tempfile.TemporaryDirectory() as folder:
        cache, benches = TuningCache(Path(folder, "tuned.json")), {shape: _bench(shape) for shape in layers}
        found = _tune("", student, benches, cache)
        for shape, bench in benches.items():
            case = "×".join(map(str, shape))
            lost = _expect_tuned(case, bench, found[shape], cache.entries().get(_key_of(*shape)))
            yield f"{case}: {found[shape]}, {lost:.1%} from the best with {len(bench.timed)} measurements"

        benches = {shape: _bench(shape) for shape in layers}
        again = _tune("a second time", student, benches, cache)
        if again != found or any(bench.ran or bench.timed for bench in benches.values()):
            searched = "what the cache remembers was searched for again, or came out differently."
            raise Wrong("a second time", searched, cause="cache.get(key) comes first.")
        yield "a second time nothing is measured: the cache remembers"

        case, cache = "every kernel is wrong", TuningCache(Path(folder, "empty.json"))
        hopeless = WithWrongKernels(measured(), KERNEL, layers[0], dict.fromkeys(grid(), 0.5))
        found = _tune(case, student, {layers[0]: hopeless}, cache)
        if found != {layers[0]: None} or cache.entries():
            remembered = f"returned {found!r} and remembered {len(cache.entries())}"
            raise Wrong(case, f"{remembered}; None is asked for, and nothing to remember")
        yield "where nothing is right, nothing is remembered"


def _bench(shape) -> WithWrongKernels:
    """The recorded sweep, with a wrong and fast result for two configurations that any good pruner keeps."""
    promising = sorted(exercises.prune(grid(), *shape, CHIP), key=Recorded(measured(), KERNEL, shape).time)
    return WithWrongKernels(measured(), KERNEL, shape, {promising[2]: 1.2, promising[4]: math.nan})


def _key_of(M, N, K) -> str:
    return exercises.cache_key(KERNEL, "SiLU(A·B + bias)", M, N, K, "float16", "NVIDIA H200", "3.6.0")


def _tune(case: str, student, benches: dict, cache) -> dict:
    answer = student(list(benches), lambda *shape: benches[shape], CHIP, cache, _key_of, BUDGET)
    if not isinstance(answer, dict) or set(answer) != set(benches):
        raise Wrong(case, f"returned {answer!r:.80}; a dict of (M, N, K) → Config is asked for, one for each shape")
    return answer


def _expect_tuned(case: str, bench, config, entry: dict | None) -> float:
    """What `config` takes more than the best, as a fraction; raises Wrong where it is not `entry`'s, or too slow."""
    bench.expect_gate(case)
    if len(bench.timed) > BUDGET:
        found = f"{len(bench.timed)} measurements; {BUDGET} may be spent."
        raise Wrong(case, found, cause="the grid is not pruned, or not cut at the budget.")
    if not isinstance(config, Config):
        raise Wrong(case, f"is {config!r}, not a Config")
    if entry is None or Config(**entry["config"]) != config or entry["ms"] != bench.time(config):
        cause = "cache.put(key, config, ms) is missing, or takes another shape's key or time."
        raise Wrong(case, f"the cache holds {entry!r} for it.", cause=cause)
    lost = bench.time(config) / bench.best()[1] - 1
    if config in bench.wrong or lost > 0.02:
        found = f"{config} is {lost:.1%} slower than the best; 2% is asked for."
        cause = "pruned for another shape or chip, or the most promising are not tried first."
        raise Wrong(case, found, cause=cause)
    return lost
