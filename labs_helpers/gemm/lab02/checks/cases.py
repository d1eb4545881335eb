"""The cases of lab 02's kernels: values, stores and loads as everywhere; of a wrong answer, where its blocks lie."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from labs_helpers.compile.source import plain
from labs_helpers.course.meter import StrayAccess
from labs_helpers.course.verdict import Wrong, kernel_cases
from labs_helpers.course.verdict.telltales import telltales
from labs_helpers.gemm.lab02.checks.astray import first_astray
from labs_helpers.measure.machine import this_machine


def tile_cases(
    student, cases: Sequence[tuple], truth, causes, loads, *, output="D", fused=False, edges=True
) -> Iterator[str]:
    """`kernel_cases`, with nothing done by PyTorch beside the kernel, and a likely cause from the blocks that a wrong
    answer loads and stores. A case ends in a dict of block sizes, or has the function's own. edges: whether tiles may
    stick out. Returns the last Run."""
    by_name = {name: arguments for name, *arguments in cases}
    try:
        return (yield from kernel_cases(student, cases, truth, causes, loads, output=output, fused=fused))
    except Wrong as wrong:
        if wrong.case not in by_name:
            raise
        raise _explained(wrong, student, by_name[wrong.case], edges) from wrong.__cause__


def _explained(wrong: Wrong, student, arguments: list, edges: bool) -> Wrong:
    """`wrong` with what its text gives away, or else where its first wrong block lies, as the likely cause.

    Both are facts; what only fits the values comes after them."""
    if not this_machine().interpreted:
        return wrong
    keywords = arguments.pop() if isinstance(arguments[-1], dict) else {}
    parameters = inspect.signature(plain(student)).parameters
    blocks = {name: p.default for name, p in parameters.items() if name.startswith("BLOCK_")} | keywords
    cause = telltales(student) or first_astray(student, blocks, *arguments, **keywords) or wrong.causes
    if cause == wrong.causes and stray(wrong) and not edges:
        cause = (
            "an offset on that line uses the wrong stride or index: no tile sticks out here, so that no mask is needed."
        )
    return Wrong(wrong.case, wrong.found, wrong.expected, wrong.where, cause, wrong.advice)


def stray(error: BaseException | None) -> bool:
    """Whether it comes from an access outside every tensor."""
    while error is not None:
        if isinstance(error, StrayAccess):
            return True
        error = error.__cause__
    return False
