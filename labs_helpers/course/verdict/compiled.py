"""Compile an answer's kernel, to find code that only the interpreter accepts."""

from __future__ import annotations

import ast
import re

import torch

from labs_helpers.compile.ahead_of_time import TARGETS, Compiled, CompileError, compile_all, job
from labs_helpers.compile.launches import Launch
from labs_helpers.compile.source import source_of
from labs_helpers.course.pointers import calls
from labs_helpers.course.verdict.messages import cause_of
from labs_helpers.course.verdict.messages.triton import AT_COMPILE_TIME
from labs_helpers.course.verdict.wrong import Wrong

CASE = "compiled"


def compiled_for(case: str, launch: Launch, target: str, *dtypes: tuple[torch.dtype, str]) -> list[Compiled]:
    """Compile the launch for `target` with each dtype, up to the stage given with it (see `job`). A compiler error
    becomes a Wrong with its likely cause. One process compiles all of them, because its start takes longer than the
    compilation of a small kernel."""
    try:
        return compile_all([job(launch, target, dtype, until) for dtype, until in dtypes])
    except CompileError as error:
        text = str(error).strip()
        last = "\n".join(text.splitlines()[-6:])
        raise Wrong(
            case,
            f"does not compile for {target}, although it runs in the interpreter:\n{last}",
            cause=cause_of(text, AT_COMPILE_TIME),
        ) from error


def check_compiles(case: str, launch: Launch) -> str:
    """Raise Wrong unless the launch compiles in float16 for a chip other than this one. Return the line to print."""
    (compiled,) = compiled_for(case, launch, "sm_90", (torch.float16, ""))
    registers = "" if compiled.registers is None else f": {compiled.registers} registers per thread"
    return f"compiles for sm_90 ({TARGETS['sm_90']}){registers}"


def check_tensor_cores(launch: Launch) -> str:
    """Raise Wrong unless the launch uses Hopper's tensor cores with float32 accumulators in float16, and full
    precision in float32. Return the line to print."""
    half, single = compiled_for(CASE, launch, "sm_90", (torch.float16, "ptx"), (torch.float32, "ttir"))
    if not half.uses_tensor_cores:
        raise Wrong(
            CASE,
            "compiled for sm_90 in float16, the kernel has no tensor-core instruction.",
            cause=(
                "tl.dot gets float32 factors, which it multiplies without tensor cores: pass both in the input's "
                "dtype, here float16."
            )
            if calls(ast.parse(source_of(launch.kernel)), "tl.dot")
            else "the kernel does not compute the product with tl.dot.",
        )
    if half.float16_accumulators:
        raise Wrong(
            CASE,
            "the compiled kernel accumulates in float16, whose 11 significant bits lose every addend below 1/2048.",
            cause="out_dtype=tl.float16, or an accumulator of tl.float16.",
        )
    if re.search(r"tt\.dot .*inputPrecision = tf32 .*xf32> \*", single.assembly):
        raise Wrong(
            CASE,
            "for float32 inputs, the compiled kernel multiplies in TF32, which rounds the inputs to 11 "
            "significant bits.",
            cause='tl.dot without input_precision="ieee".',
        )
    instructions = ", ".join(f"{count} × {name}" for name, count in half.tensor_core.items())
    return f"compiled for sm_90: tensor cores ({instructions}), float32 accumulators"
