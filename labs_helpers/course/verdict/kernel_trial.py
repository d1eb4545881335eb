"""Run an answer that launches kernels, with everything around it watched."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import torch

from labs_helpers.compile.ahead_of_time import CompileError, compile_launch
from labs_helpers.compile.launches import Launch, record_launches
from labs_helpers.compile.source import plain, reachable
from labs_helpers.course.meter import Counts, Meter, metered
from labs_helpers.course.verdict.surroundings import Guarded
from labs_helpers.course.verdict.wrong import Wrong, wrong_from
from labs_helpers.measure.machine import this_machine


@dataclass
class Run:
    """One run: what came back, the launches, and the meter (None where kernels are compiled)."""

    case: str
    value: torch.Tensor
    launches: list[Launch]
    meter: Meter | None

    def expect_loads(self, name: str, tensor, times: int, why: str) -> None:
        """Raises Wrong unless every element of `tensor` was loaded exactly `times`. Nothing on a GPU."""
        if self.meter is None:
            return
        loads = self.meter.of(tensor).loads
        if bool((loads == times).all()):
            return
        if not loads.any():
            raise Wrong(self.case, f"{name} was never loaded: the kernel did not get {name} itself")
        least, most = int(loads.min()), int(loads.max())
        found = f"{most} times" if least == most else f"between {least} and {most} times"
        raise Wrong(self.case, f"each element of {name} is loaded {found}, expected {times} ({why})")

    def expect_written_once(self, name: str = "D", overlapping: str = "") -> None:
        """Raises Wrong unless every element of the result was stored exactly once. Nothing on a GPU.

        overlapping: the likely cause where programs store to the same elements and to others none does.
        """
        if self.meter is None:
            return
        if not isinstance(self.value, torch.Tensor):
            raise Wrong(self.case, f"returned {type(self.value).__name__} {self.value!r}, not a tensor")
        counts = self.meter.of(self.value)
        never, often = counts.writers == 0, counts.writers > 1
        if not self.meter.knows(self.value):
            raise Wrong(
                self.case,
                f"no kernel was given {name}: PyTorch made it from what the kernel wrote.\n"
                "Likely cause: a part of the work is still a kernel of its own.",
            )
        if never.all():
            raise Wrong(
                self.case,
                f"nothing is ever stored to {name}.\nLikely cause: the kernel has no tl.store, "
                "or its mask is False everywhere.",
            )
        if never.any() and often.any():
            raise Wrong(
                self.case,
                f"{_where(never, name)} never written, {_where(often, name)} written by several "
                f"programs.\nLikely cause: {overlapping or _overlapping(counts.writers.ndim)}",
            )
        if never.any():
            raise Wrong(
                self.case,
                f"{_where(never, name)} never written.\nLikely cause: a tile has no program (the "
                "grid rounds down), or the mask of the store is too narrow.",
            )
        if often.any():
            raise Wrong(
                self.case,
                f"{_where(often, name)} written by {int(counts.writers.max())} programs.\n"
                "Likely cause: two programs take the same tile; on a GPU they race.",
            )
        if (counts.stores > 1).any():
            raise Wrong(
                self.case,
                f"{_where(counts.stores > 1, name)} stored {int(counts.stores.max())} times by "
                "one program.\nLikely cause: an intermediate result goes through memory; keep it in "
                "registers and store once.",
            )

    def counts(self, tensor) -> Counts | None:
        return self.meter.of(tensor) if self.meter else None


def run_watched(case: str, student, *args, **kwargs) -> Run:
    """`student(*args, **kwargs)` with NaN-filled outputs between canaries, metered in the interpreter.

    Raises Wrong, naming `case`, for an exception, a stray access, or an overwritten canary.
    """
    with ExitStack() as stack:
        guard = stack.enter_context(Guarded())
        meter = launches = None
        if this_machine().interpreted:
            meter = stack.enter_context(metered())
        else:
            launches = stack.enter_context(record_launches())
        try:
            value = student(*args, **kwargs)
        except Exception as error:
            files = {plain(part).__code__.co_filename for part in reachable(student).values()}
            raise wrong_from(error, files, case) from error
    if overwritten := guard.overwritten():
        raise Wrong(
            case,
            f"{overwritten} elements beside the output were overwritten.\n"
            "Likely cause: the store has no mask, or a mask that is too wide.",
        )
    run = Run(case, value, meter.launches if meter else launches, meter)
    if not run.launches:
        raise Wrong(case, "no Triton kernel was launched")
    return run


def compiled_for(case: str, launch: Launch, target: str, dtype):
    """What the compiler makes of the launch for `target`; its refusal becomes a Wrong with the likely cause."""
    try:
        return compile_launch(launch, target, dtype)
    except CompileError as error:
        text = str(error).strip()
        cause = f"\nLikely cause: {why}" if (why := _why_refused(text)) else ""
        last = "\n".join(text.splitlines()[-6:])
        raise Wrong(case, f"does not compile for {target}, although the interpreter runs it:\n{last}{cause}") from error


def _why_refused(text: str) -> str:
    """What in the kernel makes the compiler refuse, from its message; '' where that is not known."""
    last = text.rsplit("\n", 1)[-1]
    if "NameError" in last:
        return 'a kernel may use only tl, its arguments and tl.constexpr; infinity is float("inf") there.'
    if "AST node type: Break" in last or "AST node type: Continue" in last:
        return "Triton has no break and no continue. Put the end into the loop's bounds."
    if "oop-carried" in text or "accumulator" in text or "acc" in last:
        return (
            "the accumulator changes its dtype inside the loop. Start it as tl.float32 and leave it so; the "
            "interpreter promotes it silently, a GPU does not."
        )
    return ""


def check_tensor_cores(case: str, launch: Launch) -> str:
    """Raises Wrong unless the launch in float16 uses Hopper's tensor cores with float32 accumulators, and in
    float32 keeps full precision. Returns the line to print."""
    half = compiled_for(case, launch, "sm_90", torch.float16)
    if not half.uses_tensor_cores:
        raise Wrong(
            case,
            "compiled for sm_90 in float16, the kernel has no tensor-core instruction.\n"
            "Likely cause: the product is not a tl.dot.",
        )
    if half.float16_accumulators:
        raise Wrong(
            case,
            "the compiled kernel accumulates in float16: its 11 bits lose every addend below 1/2048 of "
            "the sum.\nLikely cause: out_dtype=tl.float16, or an accumulator of tl.float16.",
        )
    single = compiled_for(case, launch, "sm_90", torch.float32)
    if "tf32" in single.assembly:
        raise Wrong(
            case,
            "on float32 the compiled kernel multiplies in TF32, which rounds the inputs to 10 bits of "
            'mantissa.\nLikely cause: tl.dot without input_precision="ieee".',
        )
    instructions = ", ".join(f"{count} × {name}" for name, count in half.tensor_core.items())
    return f"compiled for sm_90: tensor cores ({instructions}), float32 accumulators"


def _overlapping(dimensions: int) -> str:
    if dimensions == 1:
        return "the programs' blocks overlap. A block starts at program id × block size."
    return (
        "the programs' tiles overlap. A tile starts at program id × block size: rows from axis 0 with BLOCK_M, "
        "columns from axis 1 with BLOCK_N."
    )


def _where(mask: np.ndarray, name: str) -> str:
    if mask.ndim != 2:
        index = np.flatnonzero(mask)
        return f"{index.size} of {mask.size} elements of {name} (from {index[0]} to {index[-1]}) are"
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return f"{int(mask.sum())} of {mask.size} elements of {name} ({_span('row', rows)}, {_span('column', columns)}) are"


def _span(name: str, indices) -> str:
    return f"{name} {indices[0]}" if indices[0] == indices[-1] else f"{name}s {indices[0]} to {indices[-1]}"
