"""Run an answer that launches kernels, and record everything that it does."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch

from labs_helpers.compile.launches import Launch, record_launches
from labs_helpers.course.meter import Counts, Meter, metered
from labs_helpers.course.verdict.by_pytorch import ByPyTorch
from labs_helpers.course.verdict.causes import Candidates, likely
from labs_helpers.course.verdict.errors import describe_error
from labs_helpers.course.verdict.left_alone import Given
from labs_helpers.course.verdict.picture import elements
from labs_helpers.course.verdict.surroundings import Guarded
from labs_helpers.course.verdict.touched import CALLS, Call
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.measure.machine import this_machine

COVERED = (
    "which elements does each program process, and which of them does its mask let through? print(…) in the "
    "kernel shows its blocks during a check."
)


@dataclass
class Run:
    """One run: the value returned, the launches, the meter (None if kernels are compiled), and the names of the
    PyTorch functions that the answer called in addition to the kernel."""

    case: str
    value: torch.Tensor
    launches: list[Launch]
    meter: Meter | None
    by_pytorch: list[str] = field(default_factory=list)

    def counts(self, tensor) -> Counts | None:
        return self.meter.of(tensor) if self.meter else None

    def expect_loads(self, name: str, tensor, times: int, why: str) -> None:
        """Raise Wrong unless every element of `tensor` was loaded exactly `times`. Does nothing on a GPU."""
        if self.meter is None:
            return
        loads = self.meter.of(tensor).loads
        if bool((loads == times).all()):
            return
        if not loads.any():
            raise Wrong(self.case, f"the kernel never loads {name}: it did not get {name} itself")
        least, most = int(loads.min()), int(loads.max())
        found = f"{most} times" if least == most else f"between {least} and {most} times"
        masks = {"right": loads == times, "loaded too often": loads > times, "loaded too rarely": loads < times}
        picture = elements(name, masks, tensor, f"Elements of {name} are loaded {found}, not {times}")
        told = f"each element of {name} is loaded {found}, expected {times} ({why})"
        raise Wrong(self.case, told, picture=picture)

    def expect_alone(self) -> None:
        """Raise Wrong if PyTorch computed or copied something in addition to the kernel."""
        if self.by_pytorch:
            called = ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in self.by_pytorch))
            raise Wrong(
                self.case,
                "besides launching the kernel, the function calls PyTorch: "
                f"{called.replace('__setitem__', 'tensor[…] = …')}.",
                cause="part of the work happens outside the kernel, or debugging code is left: remove it. The "
                "function may only allocate the output and launch the kernel.",
            )

    def expect_written_once(self, name: str = "D", overlapping: str = "", patterns: Candidates | None = None) -> None:
        """Raise Wrong unless every element of the result was stored exactly once. Does nothing on a GPU.

        overlapping: the likely cause if several programs store to some elements and none to others. patterns: pairs of
        a common mistake and the number of programs that then store to each element of the result or, if that is 1
        everywhere, the number of stores.
        """
        if self.meter is None:
            return
        if not isinstance(self.value, torch.Tensor):
            raise Wrong(self.case, f"returned {type(self.value).__name__} {self.value!r}, not a tensor")
        if not self.meter.knows(self.value):
            raise Wrong(
                self.case,
                f"no kernel got {name} as an argument: PyTorch made it from the kernel's output.",
                cause="part of the work is still a separate kernel.",
            )
        counts = self.meter.of(self.value)
        if wrong := _stored(counts, name, overlapping):
            found, cause = wrong
            if patterns is not None and counts.writers.any():
                # Many mistakes leave elements without a program. If the check lists them, do not guess.
                times = counts.stores if (counts.writers == 1).all() else counts.writers
                usual = cause if (times > 1).any() else ""
                cause = likely(patterns, partial(np.array_equal, times)) or usual
            often = "stored by several programs" if (counts.writers > 1).any() else "stored several times"
            masks = {"stored once": counts.stores == 1, often: counts.stores > 1, "never stored": counts.stores == 0}
            few = sum(int(mask.sum()) for mask in list(masks.values())[1:])
            title = f"{few:,} of {counts.stores.size:,} elements of {name} are not stored once"
            picture = elements(name, masks, self.value, title)
            raise Wrong(self.case, found, cause=cause, advice=COVERED, picture=picture)


def run_watched(case: str, student, *args, **kwargs) -> Run:
    """Run `student(*args, **kwargs)` with NaN-filled outputs between canaries, metered in the interpreter.

    Raises Wrong, naming `case`, for an exception, a stray access, an overwritten canary, a changed argument, or a
    result that shares memory with an argument.
    """
    given = Given(student, args, kwargs)
    CALLS.clear()
    with ExitStack() as stack:
        guard = stack.enter_context(Guarded())
        meter = stack.enter_context(metered()) if this_machine().interpreted else None
        CALLS.append(Call(student, args, kwargs, meter))
        launches = meter.launches if meter else stack.enter_context(record_launches())
        beside = stack.enter_context(ByPyTorch(student))  # innermost, so that it sees the caller
        try:
            value = student(*args, **kwargs)
        except (Exception, SystemExit) as error:
            raise describe_error(student, error, case) from error
    if overwritten := guard.overwritten():
        raise Wrong(
            case,
            f"stores outside the output overwrote {overwritten} elements.",
            cause="the store has no mask, or its mask is too wide.",
        )
    if not launches:
        raise Wrong(case, "no Triton kernel was launched")
    given.expect_left_alone(case, value)
    return Run(case, value, launches, meter, beside.calls)


def _stored(counts: Counts, name: str, overlapping: str) -> tuple[str, str] | None:
    """Return (what is wrong with the stores to the result, the likely cause); None if each element was stored once."""
    never, often = counts.writers == 0, counts.writers > 1
    if never.all():
        return f"the kernel never stores to {name}.", "the kernel has no tl.store, or its mask is False everywhere."
    if never.any() and often.any():
        found = f"{_where(never, name)} never written, {_where(often, name)} written by several programs."
        return found, overlapping or _overlapping(counts.writers.ndim)
    if never.any():
        cause = "a tile has no program (the grid rounds down), or the mask of the store is too narrow."
        return f"{_where(never, name)} never written.", cause
    if often.any():
        found = f"{_where(often, name)} written by {int(counts.writers.max())} programs."
        return found, "two programs process the same tile; on a GPU they race."
    if (twice := counts.stores > 1).any():
        found = f"{_where(twice, name)} stored {int(counts.stores.max())} times by one program."
        if (counts.stores != counts.stores[..., :1]).any():  # blocks of two steps overlap, or another bound is wrong
            return found, ""
        return found, "an intermediate result goes through memory; keep it in registers and store once after the loop."
    return None


def _overlapping(dimensions: int) -> str:
    if dimensions == 1:
        return "the programs' blocks overlap. A block starts at program id × block size."
    return (
        "the programs' tiles overlap: the store uses a wrong stride, or a tile does not start at program id × block "
        "size in each dimension."
    )


def _where(mask: np.ndarray, name: str) -> str:
    if mask.ndim != 2:
        index = np.flatnonzero(mask)
        return f"{index.size} of {mask.size} elements of {name} (from {index[0]} to {index[-1]}) are"
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return f"{int(mask.sum())} of {mask.size} elements of {name} ({_span('row', rows)}, {_span('column', columns)}) are"


def _span(name: str, indices) -> str:
    return f"{name} {indices[0]}" if indices[0] == indices[-1] else f"{name}s {indices[0]} to {indices[-1]}"
