"""Exercise 6 of lab 03: a key that changes with all that the best configuration depends on, and with nothing else."""

import os
import sys
import tempfile
from pathlib import Path

from labs_helpers.compile.source import plain, portable_source
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.launch.process import run
from labs_helpers.measure.results import ROOT

HERE = dict(
    kernel="fused_matmul", source="acc + c", M=1, N=64, K=2048, dtype="float16", gpu="NVIDIA H200", triton="3.6.0"
)
STALE = (  # what changes, and why the old configuration must not be found
    ({"kernel": "silu_matmul"}, "another kernel has another best configuration"),
    ({"source": "acc + 2 * c"}, "the kernel was edited: the old code's configuration may even be wrong for it"),
    ({"dtype": "float32"}, "another dtype takes another amount of shared memory"),
    ({"gpu": "NVIDIA A100-SXM4-80GB"}, "another GPU has other limits"),
    ({"gpu": "NVIDIA H100 80GB HBM3"}, "the architecture alone does not tell an H100 from an H200"),
    ({"triton": "3.6.1"}, "another compiler makes another program of the same configuration"),
    ({"triton": "3.7.0"}, "another compiler makes another program of the same configuration"),
    ({"N": 65}, "65 lies in the bucket after that of 64"),
    ({"K": 1024}, "a power of two belongs to its own bucket, the one that it ends"),
    ({"M": 2}, "1 is a power of two itself"),
    ({"M": 64, "N": 1}, "M, N and K each have a place of their own"),
    ({"M": 2, "K": 1024}, "M, N and K each have a place of their own"),
    ({"N": 128, "K": 1024}, "three buckets, not the product of three sizes"),
    ({"M": 16, "N": 4}, "with nothing between them, 16 and 4 read like 1 and 64"),
)
SAME = (
    ({"K": 1025}, "1025 … 2048 is one bucket"),
    ({"N": 33, "K": 1500}, "each lies in the same bucket"),
)


@exercise("03/6", "cache key", points=5, minutes=10, reference=exercises.cache_key)
def cache_key(student):
    key = student(**HERE)
    if not isinstance(key, str) or "\n" in key or not key:
        raise Wrong("", f"returned {key!r}; a line of text is asked for")
    for change, why in STALE:
        if student(**HERE | change) == key:
            found = f"the same key as for {_text({name: HERE[name] for name in change})}, a stale hit: {why}."
            cause = "" if change.keys() & {"M", "N", "K"} else "it is not in the key, or not all of it."
            raise Wrong(_text(change), found, cause=cause)
    yield f"{len(STALE)} stale hits avoided"
    for change, why in SAME:
        if student(**HERE | change) != key:
            found = f"another key than for {_text({name: HERE[name] for name in change})}; {why}."
            cause = "the exact size is in the key, so that nearly nothing is ever found again."
            raise Wrong(_text(change), found, cause=cause)
    yield "shapes of one bucket share an entry"
    elsewhere = _in_other_processes(student)
    if set(elsewhere) != {key}:
        found = f"the key is {elsewhere[0]!r}, here it is {key!r}."
        cause = "hash() of a text differs from process to process; hashlib does not."
        raise Wrong("in another process", found, cause=cause)
    yield "the same in another process"


def _text(change: dict) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in change.items())


def _in_other_processes(student) -> list[str]:
    """The key of HERE in two processes whose hashes are salted differently."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "answer.py").write_text(portable_source(student))
        code = f"from answer import {plain(student).__name__} as key; print(key(**{HERE!r}))"
        path = {**os.environ, "PYTHONPATH": os.pathsep.join((folder, str(ROOT)))}
        command = [sys.executable, "-c", code]
        return [
            run(command, timeout=60, cwd=folder, env={**path, "PYTHONHASHSEED": seed}).strip() for seed in ("1", "2")
        ]
