"""The cases of lab 02's kernels: values, stores and loads as everywhere; of a wrong answer, where its blocks lie."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator

from labs_helpers.compile.source import plain
from labs_helpers.course.meter import StrayAccess
from labs_helpers.course.verdict import Wrong, kernel_cases
from labs_helpers.course.verdict.telltales import telltales
from labs_helpers.gemm.lab02.checks.astray import first_astray
from labs_helpers.measure.machine import this_machine


def tile_cases(student, cases: Iterable[tuple], truth, causes, loads, *, output="D", fused=False) -> Iterator[str]:
    """`kernel_cases`, with nothing done by PyTorch beside the kernel, and a likely cause from the blocks that a wrong
    answer loads and stores. A case ends in a dict of block sizes, or has the function's own. Returns the last Run."""
    run = None
    for case in cases:
        try:
            lines = kernel_cases(student, [case], truth, causes, loads, output=output, fused=fused)
            run = yield from lines
            run.expect_alone()
        except Wrong as wrong:
            raise _explained(wrong, student, case) from wrong.__cause__
    return run


def _explained(wrong: Wrong, student, case: tuple) -> Wrong:
    """`wrong` with what its text gives away, or else where its first wrong block lies, as the likely cause.

    Both are facts; what only fits the values comes after them."""
    if not this_machine().interpreted:
        return wrong
    arguments, keywords = (case[1:-1], case[-1]) if isinstance(case[-1], dict) else (case[1:], {})
    parameters = inspect.signature(plain(student)).parameters
    blocks = {name: p.default for name, p in parameters.items() if name.startswith("BLOCK_")} | keywords
    cause = telltales(student) or first_astray(student, blocks, *arguments, **keywords) or wrong.causes
    return Wrong(wrong.case, wrong.found, wrong.expected, wrong.where, cause, wrong.advice)


def stray(error: BaseException | None) -> bool:
    """Whether it comes from an access outside every tensor."""
    while error is not None:
        if isinstance(error, StrayAccess):
            return True
        error = error.__cause__
    return False
