"""Divide the time of training steps into parts: data, forward, backward, communication, optimizer and idle.

    with passes_marked():
        trace = record(lambda: [step() for _ in range(3)])
    parts = step_parts(trace.events)

It reads a trace of `measure.trace`, on a GPU or a CPU, of any program. PyTorch itself marks what a DataLoader and an
optimizer do, and gloo's collectives; `passes_marked` adds marks for the forward and backward passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from labs_helpers.measure.kernel_kinds import COMMUNICATION, kinds
from labs_helpers.measure.trace import Event

PARTS = ("data", "forward", "backward", "communication", "optimizer", "idle")
FORWARD, BACKWARD = "forward of a step", "backward of a step"  # the names of the marks
_MARKS = ((FORWARD, "forward"), (BACKWARD, "backward"), ("Optimizer.step#", "optimizer"), ("enumerate(Data", "data"))
_NEXT = {"backward": "optimizer", "data": "forward"}  # work between two marks: clipping, or the copy of a batch

Span = tuple[float, float]  # from, to, in µs


@contextmanager
def passes_marked() -> Iterator[None]:
    """Mark, for the profiler, each forward pass of an outermost module and each backward pass inside the block."""
    import torch
    from torch.autograd.profiler import record_function
    from torch.nn.modules import module as hooks

    open_marks: list[Any] = []

    def begin(module: Any, args: Any) -> None:
        open_marks.append(None if open_marks else record_function(FORWARD).__enter__())

    def end(module: Any, args: Any, output: Any) -> None:
        if open_marks and (mark := open_marks.pop()) is not None:
            mark.__exit__(None, None, None)

    def backward(*args: Any, **named: Any) -> None:
        with record_function(BACKWARD):
            before(*args, **named)

    before = torch.autograd.backward
    handles = [hooks.register_module_forward_pre_hook(begin), hooks.register_module_forward_hook(end, always_call=True)]
    torch.autograd.backward = backward
    try:
        yield
    finally:
        torch.autograd.backward = before
        for handle in handles:
            handle.remove()


def spans_by_part(events: Iterable[Event]) -> dict[str, list[Span]]:
    """Return when each part but "idle" took place, as it was recorded: spans may overlap, within a part too.

    Work between two marks counts with the part before it: the loss with forward, and gradient clipping with the
    optimizer.
    """
    events = [event for event in events if event["ph"] == "X"]
    marks = [(span_of(event), part) for event in events if (part := _part_of_mark(event)) is not None]
    launched = {event["args"].get("External id"): event["ts"] for event in events if event["cat"] == "cpu_op"}
    spans: dict[str, list[Span]] = {part: [] for part in PARTS if part != "idle"}
    spans["data"] += [span for span, part in marks if part == "data"]
    spans["communication"] += [span_of(event) for event in events if event["name"].startswith("gloo:")]
    for event, kind in kinds(events):
        at = launched.get(event["args"].get("External id"), event["ts"])
        part = "communication" if kind == COMMUNICATION else _part_at(at, marks)
        spans[part].append(span_of(event))
    return spans


def step_parts(events: Iterable[Event]) -> dict[str, list[Span]]:
    """Return, for each of PARTS, when it took place: spans in order, which do not overlap and fill the whole trace.

    A moment belongs to the first of these that applies: a kernel of the program runs; the program is inside its
    DataLoader ("data"); a collective is under way ("communication": it is exposed, because no kernel runs). Otherwise
    it is idle.
    """
    events = list(events)
    recorded, parts, busy = spans_by_part(events), dict[str, list[Span]](), list[Span]()
    for part in ("forward", "backward", "optimizer", "data", "communication"):
        parts[part] = without(merged(recorded[part]), busy)
        busy = merged(busy + parts[part])
    timed = [span_of(event) for event in events if event["ph"] == "X"]
    whole = [(min(start for start, _ in timed), max(stop for _, stop in timed))] if timed else []
    parts["idle"] = without(whole, busy)
    return {part: parts[part] for part in PARTS}


def shares(parts: dict[str, list[Span]]) -> dict[str, float]:
    """Return each part's share of the whole time; all 0 for a trace without events."""
    lengths = {part: sum(stop - start for start, stop in spans) for part, spans in parts.items()}
    whole = sum(lengths.values())
    return {part: length / whole if whole else 0.0 for part, length in lengths.items()}


def merged(spans: Iterable[Span], gap: float = 0.0) -> list[Span]:
    """Return the union of spans: in order, and none that touch; gaps of at most `gap` are filled."""
    found: list[Span] = []
    for start, stop in sorted(spans):
        if found and start <= found[-1][1] + gap:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        elif stop > start:
            found.append((start, stop))
    return found


def without(spans: list[Span], taken: list[Span]) -> list[Span]:
    """Return `spans` without the moments of `taken`; both are as `merged` returns them."""
    found, at = [], 0
    for start, stop in spans:
        while at < len(taken) and taken[at][0] < stop:
            other, end = taken[at]
            if start < other:
                found.append((start, other))
            start = max(start, end)
            if end > stop:
                break  # the next span may begin before this end, too
            at += 1
        if start < stop:
            found.append((start, stop))
    return found


def span_of(event: Event) -> Span:
    """Return when an event took place."""
    return event["ts"], event["ts"] + event["dur"]


def _part_of_mark(event: Event) -> str | None:
    if event["cat"] != "user_annotation":
        return None
    return next((part for name, part in _MARKS if event["name"].startswith(name)), None)


def _part_at(moment: float, marks: list[tuple[Span, str]]) -> str:
    """Return the part of the outermost mark around a moment, or of the last mark before it; before all marks, data."""
    inside = [(start, part) for (start, stop), part in marks if start <= moment <= stop]
    if inside:
        return min(inside)[1]
    before = [(stop, part) for (_, stop), part in marks if stop < moment]
    part = max(before)[1] if before else "data"
    return _NEXT.get(part, part) if before else part
