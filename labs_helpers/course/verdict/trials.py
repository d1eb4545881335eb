"""The usual trial of an answer that launches a kernel: for each case, the recorded run and then the values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import torch

from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict.advice import print_it
from labs_helpers.course.verdict.causes import Candidates, Passed, still_possible
from labs_helpers.course.verdict.compare import expect_close, is_within
from labs_helpers.course.verdict.kernel_trial import Run, run_watched
from labs_helpers.course.verdict.left_alone import expect_new_results
from labs_helpers.course.verdict.wrong import Wrong


@dataclass(frozen=True)
class Truth:
    """The right result: `expected` (float64 on the CPU) within `bound` (one number, or one per element; `why` says
    how it was derived), in `dtype` (None: any; `why_dtype` says why)."""

    expected: torch.Tensor
    bound: torch.Tensor | float
    why: str
    dtype: torch.dtype | None = None
    why_dtype: str = "the inputs have that"


def kernel_cases(
    student: Callable,
    cases: Iterable[tuple],
    truth: Callable[..., Truth],
    causes: Callable[..., Candidates] = lambda run, *arguments: (),
    loads: Callable[..., Iterable[tuple]] = lambda run, *arguments: (),
    *,
    stores: Callable[..., Candidates] | None = None,
    output: str = "D",
    fused: bool = False,
) -> Iterator[str]:
    """Yield the name of each of `cases`, (name, *arguments), in which `student(*arguments)` is right; otherwise raise
    Wrong.

    A dict at the end of a case contains keyword arguments, such as block sizes, which only the student's function gets.
    Every element of the result, called `output`, must be stored once; its values are `truth(*arguments)`; and each
    (name, tensor, times, why) of `loads(run, *arguments)` must be loaded that many times. PyTorch may compute and copy
    nothing in addition to the kernel, and a second call must return a new tensor. causes(run, *arguments): the results
    of common mistakes. stores(run, *arguments): the number of programs that store to each element of the result for
    common mistakes. fused: the answer must launch a single kernel, which stores to its result only. A cause that would
    have failed in an earlier case is not named. Returns the last Run.
    """
    passed: list[Passed] = []
    for case, *arguments in cases:
        keywords = arguments.pop() if isinstance(arguments[-1], dict) else {}
        with TorchTraffic() as outside:
            run = run_watched(case, student, *arguments, **keywords)
        run.expect_alone()
        run.expect_written_once(output, patterns=stores(run, *arguments) if stores else None)
        right = truth(*arguments)
        expect_dtype(run, right.dtype, right.why_dtype)
        possible = still_possible(causes(run, *arguments), passed)
        advice = partial(print_it, run.launches, run.value)
        expect_close(case, run.value, right.expected, right.bound, right.why, possible, advice=advice)
        if fused:
            expect_fused(run, outside)
        for load in loads(run, *arguments):
            run.expect_loads(*load)
        if not passed:
            expect_new_results(case, run.value, partial(student, *arguments, **keywords))
        passed.append((causes(run, *arguments), partial(is_within, expected=right.expected, bound=right.bound)))
        yield case
    return run


def expect_dtype(run: Run, dtype: torch.dtype | None, why: str) -> None:
    if isinstance(run.value, torch.Tensor) and dtype not in (None, run.value.dtype):
        raise Wrong(run.case, f"the result is {run.value.dtype}, expected {dtype}: {why}")


# PyTorch operations that belong in the kernel; the interpreter and the guards use others.
COMPUTES = set(
    "_softmax add add_ addmm amax baddbmm bmm clamp clamp_min clone div div_ exp exp2 log log2 logsumexp masked_fill "
    "masked_fill_ max maximum mm mul mul_ nan_to_num relu relu_ sigmoid silu tril triu where".split()
)


def expect_fused(run: Run, outside: TorchTraffic) -> None:
    """Raise Wrong unless exactly one kernel ran, it stored to the result only, and PyTorch computed nothing in
    addition."""
    if len(run.launches) > 1:
        raise Wrong(run.case, f"{len(run.launches)} kernels were launched; a fused operation is one kernel")
    if extra := [operation.name for operation in outside.operations if operation.name in COMPUTES]:
        raise Wrong(
            run.case,
            f"PyTorch ran {', '.join(extra)} in addition to the kernel.",
            cause="part of the work is still a separate kernel.",
        )
    if run.meter and (stored := run.meter.bytes_stored_beside(run.value)):
        raise Wrong(
            run.case,
            f"the kernel stores {stored:,} bytes to a tensor other than its result.",
            cause="an intermediate result goes through memory; keep it in registers.",
        )
