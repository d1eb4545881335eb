"""What ran when: a trace of one call by PyTorch's profiler, cut down to what the labs read.

`Trace.events` are Chrome-trace events with "ph" "X" as torch.profiler writes them: "cat", "name", "ts" (µs, from 0),
"dur" (µs), "tid" and, of "args":

    cpu_op                           "External id" (its own), "Input Dims", "Input type"
    cuda_runtime                     "correlation", "External id": launches, copies, waits; calls of the driver too
    kernel, gpu_memcpy, gpu_memset   "stream", "correlation", "External id" of the innermost cpu_op that launched it;
                                     of copies "bytes"
    user_annotation                  a record_function on the CPU
    gpu_user_annotation              its shadow over the GPU's kernels: a range, not work

On a CPU operators compute by themselves, so to a trace without GPU work `record` adds for each cpu_op that has a kernel
of PyTorch (aten::mm; not aten::linear, made of it, nor the view aten::t) a "kernel" with the operator's name, times and
External id on stream 0, and its launch, of no length: what reads a GPU's trace reads a CPU's. The loops that
torch.compile writes for a CPU are no operators, and are not seen.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from labs_helpers.measure.kernel_kinds import by_kind

__all__ = [
    "GPU_WORK", "NO_WORK", "Event", "Trace", "busy", "by_kind", "by_operation", "covered", "launches", "load",
    "operations", "packed", "profiler", "record", "reduced", "save", "trace_of",
]  # fmt: skip

Event = dict[str, Any]

GPU_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
_CATEGORIES = (*GPU_WORK, "cpu_op", "cuda_runtime", "cuda_driver", "user_annotation", "gpu_user_annotation")
_ARGS = ("External id", "Input Dims", "Input type", "stream", "correlation", "bytes")
# Of the runtime's calls: what starts work, waits for it, or is known to wait. The others ask for settings.
_CALLS = re.compile(r"Launch|Memcpy|Memset|Synchronize|WaitEvent|Alloc|alloc|Free")

# Operators with a kernel for the CPU that compute nothing: views, and memory without values.
NO_WORK = frozenset(
    f"aten::{name}"
    for name in ("as_strided", "_reshape_alias", "view", "view_as_real", "view_as_complex", "unfold", "empty",
                 "empty_strided", "resize_", "set_", "is_set_to")
)  # fmt: skip


@dataclass(frozen=True)
class Trace:
    """Events in order of their start, and under `on` where and when they were recorded (`provenance()`)."""

    events: list[Event]
    on: dict[str, Any]


def record(function: Callable[[], object], *, warmup: int = 1) -> Trace:
    """Return a trace of one call of `function()`; the GPU is idle when the call begins and ends.

    The recorded call follows at least one of `warmup` calls that the profiler sees and discards, because its own start
    is slow. If the function compiles or tunes on its first calls, call it yourself before.
    """
    if warmup < 1:
        raise ValueError(f"warmup is {warmup}; the profiler needs at least 1 call to warm up")
    with profiler(warmup, 1) as profiling:
        for _ in range(warmup + 1):
            function()
            _wait()
            profiling.step()
    return trace_of(profiling)


def profiler(warmup: int, steps: int) -> Any:
    """Return a torch.profiler.profile that discards `warmup` steps and then records `steps`; its user calls step()
    after each."""
    from torch.profiler import ProfilerActivity, profile, schedule

    from labs_helpers.measure.machine import has_gpu

    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * has_gpu()
    plan = schedule(wait=0, warmup=warmup, active=steps, repeat=1)
    if not has_gpu():
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # else every profile on a CPU writes two lines to stderr
    # PyTorch before 2.13 warns of lost events, though there is one cycle. Its advice, acc_events, doubles the time of a
    # trace.
    warnings.filterwarnings("ignore", "Warning: Profiler clears events", UserWarning)
    _wait()
    return profile(activities=activities, schedule=plan, record_shapes=True)


def trace_of(profiling: Any) -> Trace:
    """Return the trace that a `profiler` has recorded."""
    import torch

    from labs_helpers.measure.provenance import provenance

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiling.export_chrome_trace(str(path))
        # Decimal: kineto's times are nanoseconds since some other day, more digits than a float has.
        written = json.loads(path.read_text(errors="replace"), parse_float=Decimal, strict=False)
    events = reduced(written["traceEvents"])
    if not any(event["cat"] in GPU_WORK for event in events) and not torch.cuda.memory_allocated():
        # A program that holds memory on a GPU computes there: then the profiler could not see its kernels.
        events = _in_order(events + _pseudo_kernels(events))
    return Trace(events, provenance())


def reduced(written: Iterable[Event]) -> list[Event]:
    """Return the events and keys that the labs read, out of those that torch.profiler writes; their time starts at
    0."""
    kept = [
        event
        for event in written
        if event.get("ph") == "X" and event.get("cat") in _CATEGORIES
        if not event["cat"].startswith("cuda_") or _CALLS.search(event["name"])
        if not event["name"].startswith("ProfilerStep#")  # the profiler's own range
        if event["cat"] != "cpu_op" or "External id" in event["args"]
    ]
    start = min((event["ts"] for event in kept), default=0)
    return _in_order(
        {
            "ph": "X",
            "cat": "cuda_runtime" if event["cat"] == "cuda_driver" else event["cat"],
            "name": event["name"],
            "ts": round(float(event["ts"] - start), 3),
            "dur": round(float(event["dur"]), 3),
            "tid": event["tid"],
            "args": {key: event["args"][key] for key in _ARGS if key in event.get("args", {})},
        }
        for event in kept
    )


def _pseudo_kernels(events: list[Event]) -> list[Event]:
    """Return a kernel and its launch for each operator with a CPU kernel; if such operators are nested, only for the
    outermost."""
    import torch

    # Without their overloads, which a trace does not name. copy_ is one kernel for all devices.
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("CPU")
    working = {name.split(".")[0] for name in registered} - NO_WORK | {"aten::copy_"}
    added: list[Event] = []
    reached: dict[Any, float] = {}
    for event in events:
        if event["cat"] != "cpu_op" or event["name"] not in working or event["ts"] < reached.get(event["tid"], 0.0):
            continue
        reached[event["tid"]] = event["ts"] + event["dur"]
        args = {"correlation": len(added) // 2 + 1, "External id": event["args"]["External id"]}
        added.append(event | {"cat": "cuda_runtime", "name": "launch", "dur": 0.0, "args": args})
        added.append(event | {"cat": "kernel", "tid": 0, "args": {"stream": 0} | args})
    return added


def _in_order(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: (event["ts"], -event["dur"]))


def _wait() -> None:
    import torch

    from labs_helpers.measure.machine import has_gpu

    if has_gpu():
        torch.cuda.synchronize()


def packed(trace: Trace) -> bytes:
    """Return the bytes of a file that `load` reads: compressed JSON, identical for identical traces."""
    text = json.dumps({"on": trace.on, "events": trace.events}, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def save(path: str | Path, trace: Trace) -> None:
    """Write a trace to a file whose name ends in '.json.gz', creating its folder if necessary."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(packed(trace))


def load(path: str | Path) -> Trace:
    """Load what `save` wrote. FileNotFoundError for a missing file, ValueError for a damaged one."""
    packed = Path(path).read_bytes()
    try:
        content = json.loads(gzip.decompress(packed))
        return Trace(content["events"], content["on"])
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error) as error:
        raise ValueError(f"{path} is damaged, or no trace of `save`: {error!r}") from error


def launches(events: Iterable[Event]) -> int:
    """Return how many kernels ran, without copies and memsets."""
    return sum(event.get("cat") == "kernel" for event in events)


def covered(events: Iterable[Event]) -> float:
    """Return the µs during which at least one of the events runs."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted((event["ts"], event["ts"] + event["dur"]) for event in events):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def operations(events: Iterable[Event]) -> list[tuple[Event, float]]:
    """Return (operation, µs) for each PyTorch operation that launched GPU work itself, in the order of `events`.

    µs: the time of all GPU work that carries the operation's External id, added up over streams.
    """
    events, us = list(events), dict[Any, float]()
    for event in events:
        if event.get("cat") in GPU_WORK and (number := event["args"].get("External id")) is not None:
            us[number] = us.get(number, 0.0) + event["dur"]
    called = [event for event in events if event.get("cat") == "cpu_op"]
    return [(one, us[number]) for one in called if (number := one["args"]["External id"]) in us]


def by_operation(events: Iterable[Event]) -> dict[str, tuple[int, float]]:
    """Return name → (calls that launched GPU work, their µs on the GPU), the most expensive operation first."""
    rows = dict[str, tuple[int, float]]()
    for operation, us in operations(events):
        calls, before = rows.get(operation["name"], (0, 0.0))
        rows[operation["name"]] = calls + 1, before + us
    return dict(sorted(rows.items(), key=lambda row: -row[1][1]))


def busy(events: Iterable[Event]) -> float:
    """Return the share of the trace's time, from the first event's start to the last one's end, during which any GPU
    work ran on any stream. 0 for a trace without events."""
    timed = [event for event in events if event["ph"] == "X"]
    if not timed:
        return 0.0
    whole = max(event["ts"] + event["dur"] for event in timed) - min(event["ts"] for event in timed)
    return covered(event for event in timed if event["cat"] in GPU_WORK) / whole if whole else 0.0
