"""What proves the cache key of lab 03 right, and its transfer exercise."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from pathlib import Path

from labs_helpers.compile.source import plain, portable_source
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.lab03.checks.searches import BUDGET, Planted
from labs_helpers.gemm.tuning.cache import TuningCache
from labs_helpers.gemm.tuning.recorded import measured, shapes
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.launch.process import run
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.measure.results import ROOT

HERE = {
    "kernel": "fused_matmul",
    "source": "acc + c",
    "M": 1024,
    "N": 4096,
    "K": 2048,
    "dtype": "float16",
    "gpu": "NVIDIA H200",
    "triton": "3.6.0",
}
STALE = [  # what changes, and why the old configuration must not be found
    ({"kernel": "silu_matmul"}, "another kernel has another best configuration"),
    ({"source": "acc + 2 * c"}, "the kernel was edited: the old code's configuration may even be wrong for it"),
    ({"dtype": "float32"}, "another dtype takes another amount of shared memory"),
    ({"gpu": "NVIDIA A100-SXM4-80GB"}, "another GPU has other limits"),
    ({"gpu": "NVIDIA H100 80GB HBM3"}, "the architecture alone does not tell an H100 from an H200"),
    ({"triton": "3.6.1"}, "another compiler makes another program of the same configuration"),
    ({"triton": "3.7.0"}, "another compiler makes another program of the same configuration"),
    ({"M": 1025}, "1025 lies in the bucket after that of 1024"),
    ({"K": 1024}, "a power of two belongs to its own bucket, the one that it ends"),
    ({"M": 4096, "N": 1024}, "M, N and K each have a place of their own"),
    ({"M": 2048, "K": 1024}, "M, N and K each have a place of their own"),
    ({"N": 8192, "K": 1024}, "three buckets, not the product of three sizes"),
]
SAME = [({"M": 513}, "513 … 1024 is one bucket"), ({"M": 700, "N": 3000, "K": 1025}, "each lies in the same bucket")]
# Without something between the parts these two are the same text.
JOINED = (HERE | {"M": 16, "N": 4, "K": 1}, HERE | {"M": 1, "N": 64, "K": 1})


@exercise("03/6", "cache key", points=5, minutes=10, reference=exercises.cache_key)
def cache_key(student):
    key = student(**HERE)
    if not isinstance(key, str) or "\n" in key or not key:
        raise Wrong("", f"returned {key!r}; a line of text is asked for")
    for change, why in STALE:
        if student(**HERE | change) == key:
            raise Wrong(
                _told(change),
                f"the same key as for {_told({k: HERE[k] for k in change})}: a stale hit.\n"
                f"Likely cause: it is not in the key, or not all of it; {why}.",
            )
    yield f"{len(STALE)} stale hits avoided"
    for change, why in SAME:
        if student(**HERE | change) != key:
            raise Wrong(
                _told(change),
                f"another key than for {_told({k: HERE[k] for k in change})}; {why}.\nLikely "
                "cause: the exact size is in the key, so that nearly nothing is ever found again.",
            )
    if student(**HERE | {"M": 1}) == student(**HERE | {"M": 2}):
        raise Wrong("M = 1 and M = 2", "have the same key.\nLikely cause: 1 is a power of two itself.")
    yield "shapes of one bucket share an entry"
    keys = [student(**case) for case in JOINED]
    if len(set(keys)) < len(keys):
        raise Wrong(
            "",
            "two different things have the same key.\nLikely cause: the parts follow one another with "
            "nothing between them: 16 and 4 read like 1 and 64.",
        )
    elsewhere = _in_other_processes(student)
    if set(elsewhere) != {key}:
        raise Wrong(
            "in another process",
            f"the key is {elsewhere[0]!r}, here it is {key!r}.\nLikely cause: hash() of "
            "a text differs from process to process; hashlib does not.",
        )
    yield "the same in another process"


def _told(change: dict) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in change.items())


def _in_other_processes(student) -> list[str]:
    """The key of HERE in two processes whose hashes are salted differently."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "answer.py").write_text(portable_source(student))
        code = f"from answer import {plain(student).__name__} as key; print(key(**{HERE!r}))"
        return [
            run(
                [sys.executable, "-c", code],
                timeout=60,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join((folder, str(ROOT))), "PYTHONHASHSEED": seed},
            ).strip()
            for seed in ("1", "2")
        ]


@exercise("03/7", "transfer: tune SiLU(A·B + bias)", points=30, minutes=10)
def tune_silu(student):
    frame, chip = measured(), DATASHEET["H200"]
    layers = shapes(frame, "silu_matmul")
    benches = {shape: _with_wrong_ones(frame, shape, chip) for shape in layers}
    with tempfile.TemporaryDirectory() as folder:
        cache = TuningCache(Path(folder, "tuned.json"))
        found = _tuned("", student(layers, lambda *shape: benches[shape], chip, cache, _key_of, BUDGET), layers)
        for shape, bench in benches.items():
            _expect_tuned(shape, bench, found[shape], cache)
            yield (
                f"{'×'.join(map(str, shape))}: {found[shape]}, {bench.time(found[shape]) / bench.best()[1] - 1:.1%} "
                f"from the best with {len(bench.timed)} measurements"
            )
        for bench in benches.values():
            bench.timed.clear()
            bench.ran.clear()
        again = _tuned(
            "a second time", student(layers, lambda *shape: benches[shape], chip, cache, _key_of, BUDGET), layers
        )
        if again != found or any(bench.ran or bench.timed for bench in benches.values()):
            raise Wrong(
                "a second time",
                "what the cache remembers was searched for again, or came out differently.\n"
                "Likely cause: cache.get(key) comes first.",
            )
        yield "a second time nothing is measured: the cache remembers"
        hopeless = Planted(frame, "silu_matmul", layers[0], dict.fromkeys(grid(), 0.5))
        cache = TuningCache(Path(folder, "empty.json"))
        found = student(layers[:1], lambda *shape: hopeless, chip, cache, _key_of, BUDGET)
        if found != {layers[0]: None} or cache.entries():
            raise Wrong(
                "every kernel is wrong",
                f"returned {found!r} and remembered {len(cache.entries())}; None is asked for, and nothing to remember",
            )
        yield "where nothing is right, nothing is remembered"


def _key_of(M, N, K) -> str:
    return exercises.cache_key("silu_matmul", "SiLU(A·B + bias)", M, N, K, "float16", "NVIDIA H200", "3.6.0")


def _with_wrong_ones(frame, shape, chip) -> Planted:
    """The recorded sweep, with a wrong and fast result for two configurations that any good pruner keeps."""
    plain_bench = Planted(frame, "silu_matmul", shape, {})
    promising = sorted(exercises.prune(grid(), *shape, chip), key=plain_bench.time)
    return Planted(frame, "silu_matmul", shape, {promising[2]: 1.2, promising[4]: math.nan})


def _tuned(case: str, answer, layers) -> dict:
    if not isinstance(answer, dict) or set(answer) != set(layers):
        raise Wrong(case, f"returned {answer!r:.80}; a dict of (M, N, K) → Config is asked for, one for each shape")
    return answer


def _expect_tuned(shape, bench, config, cache) -> None:
    case = "×".join(map(str, shape))
    bench.expect_gate(case)
    if len(bench.timed) > BUDGET:
        raise Wrong(
            case,
            f"{len(bench.timed)} measurements; {BUDGET} may be spent.\n"
            "Likely cause: the grid is not pruned, or not cut at the budget.",
        )
    if not isinstance(config, Config):
        raise Wrong(case, f"is {config!r}, not a Config")
    lost = bench.time(config) / bench.best()[1] - 1
    if config in bench.wrong or lost > 0.02:
        raise Wrong(
            case,
            f"{config} is {lost:.1%} slower than the best; 2% is asked for.\n"
            "Likely cause: pruned for another shape or chip, or the most promising are not tried first.",
        )
    entry = cache.entries().get(_key_of(*shape))
    if entry is None or Config(**entry["config"]) != config or entry["ms"] != bench.time(config):
        raise Wrong(
            case,
            f"the cache holds {entry!r} for it.\n"
            "Likely cause: cache.put(key, config, ms) is missing, or takes another shape's key or time.",
        )
