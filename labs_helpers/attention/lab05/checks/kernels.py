"""What proves exercises 2 and 3 of lab 05 right: the kernels of dQ, and of dK and dV."""

from __future__ import annotations

import torch

from labs_helpers.attention.lab05 import exercises
from labs_helpers.attention.lab05.checks.trial import (
    Case,
    expect_gradient,
    expect_loads_between,
    loads_of_keys,
    loads_of_queries,
)
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.kernel_trial import check_tensor_cores, run_watched
from labs_helpers.course.verdict.wrong import Wrong

CASES = (
    Case("128 queries, 128 keys", 128, 128),
    Case("50 queries, 40 keys", 50, 40),  # small scores: what is past the end shows here only if it is NaN
    Case("100 queries, 70 keys, scores near −200", 100, 70, near=-200.0),
    Case("192 queries, 192 keys, causal", 192, 192, causal=True),
    Case("70 queries, 150 keys, causal, float16", 70, 150, causal=True, dtype=torch.float16),
    Case("130 queries, 70 keys, causal: 60 queries see no key", 130, 70, causal=True),
    Case(
        "100 queries, 100 keys, causal, BLOCK_M=32, BLOCK_N=64",
        100,
        100,
        causal=True,
        blocks=(("BLOCK_M", 32), ("BLOCK_N", 64)),
    ),
    Case(
        "100 queries, 100 keys, causal, BLOCK_M=64, BLOCK_N=32",
        100,
        100,
        causal=True,
        blocks=(("BLOCK_M", 64), ("BLOCK_N", 32)),
    ),
)


@exercise("05/2", "dQ", points=15, minutes=20, reference=exercises.query_gradient, kernel=True)
def query_gradient(student):
    for case in CASES:
        given, exact = case.operands()
        run = run_watched(case.name, student, **given, causal=case.causal, **dict(case.blocks))
        expect_gradient(run, "dq", run.value, exact, case.dtype)
        for name, key in (("Q", "q"), ("dO", "do"), ("lse", "lse"), ("delta", "delta")):
            run.expect_loads(name, given[key], 1, f"a tile of {name} belongs to one program, which keeps it")
        least, most = loads_of_keys(case.Lq, case.Lk, case.causal, *_blocks(run))
        for name in ("k", "v"):
            expect_loads_between(
                run,
                name.upper(),
                given[name],
                least,
                most,
                "key tiles behind the diagonal are computed although all of them is masked",
            )
        yield case.name
    yield "a program stops at the diagonal: K and V are loaded by the query tiles that see them, and no other"
    yield check_tensor_cores("compiled", run.launches[-1])


@exercise("05/3", "dK and dV", points=25, minutes=25, reference=exercises.key_value_gradients, kernel=True)
def key_value_gradients(student):
    for case in CASES:
        given, exact = case.operands()
        run = run_watched(case.name, student, **given, causal=case.causal, **dict(case.blocks))
        if not (isinstance(run.value, tuple) and len(run.value) == 2):
            raise Wrong(case.name, f"returned {type(run.value).__name__}; (dK, dV) is asked for")
        dk, dv = run.value
        expect_gradient(run, "dv", dv, exact, case.dtype)
        expect_gradient(run, "dk", dk, exact, case.dtype)
        for name, key in (("K", "k"), ("V", "v")):
            run.expect_loads(name, given[key], 1, f"a tile of {name} belongs to one program, which keeps it")
        least, most = loads_of_queries(case.Lq, case.Lk, case.causal, *_blocks(run))
        for name, key in (("Q", "q"), ("dO", "do"), ("lse", "lse"), ("delta", "delta")):
            expect_loads_between(
                run,
                name,
                given[key],
                least,
                most,
                "query tiles before the diagonal are computed although all of them is masked",
            )
        yield case.name
    yield "every element of dK and dV has one writer; a program starts at the diagonal"
    yield check_tensor_cores("compiled", run.launches[-1])


def _blocks(run) -> tuple[int, int]:
    constants = run.launches[-1].constexprs
    return constants.get("BLOCK_M", 64), constants.get("BLOCK_N", 64)
