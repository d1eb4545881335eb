"""Check lab 02's kernels on several cases, and locate the first wrong block of a wrong answer."""

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
    """Run `kernel_cases`, and explain a wrong answer by the blocks that it loads and stores. Returns the last Run.

    cases: (name, *arguments), optionally with a dict of block sizes at the end. edges: whether tiles may extend past
    the matrices. The other arguments are those of `kernel_cases`.
    """
    by_name = {name: arguments for name, *arguments in cases}
    try:
        return (yield from kernel_cases(student, cases, truth, causes, loads, output=output, fused=fused))
    except Wrong as wrong:
        if wrong.case not in by_name:
            raise
        raise _explained(wrong, student, by_name[wrong.case], edges) from wrong.__cause__


def _explained(wrong: Wrong, student, arguments: list, edges: bool) -> Wrong:
    """Return `wrong` with a likely cause from the answer's source text or from its first wrong block.

    Both are facts, so they come before causes that merely fit the values.
    """
    if not this_machine().interpreted:
        return wrong
    keywords = arguments.pop() if isinstance(arguments[-1], dict) else {}
    parameters = inspect.signature(plain(student)).parameters
    blocks = {name: p.default for name, p in parameters.items() if name.startswith("BLOCK_")} | keywords
    cause = telltales(student) or first_astray(student, blocks, *arguments, **keywords) or wrong.causes
    if cause == wrong.causes and stray(wrong) and not edges:
        cause = "an offset on that line uses the wrong stride or index; all tiles fit here, and no mask is needed."
    return Wrong(wrong.case, wrong.found, wrong.expected, wrong.where, cause, wrong.advice)


def stray(error: BaseException | None) -> bool:
    """Return whether an access outside all tensors caused the error."""
    while error is not None:
        if isinstance(error, StrayAccess):
            return True
        error = error.__cause__
    return False
