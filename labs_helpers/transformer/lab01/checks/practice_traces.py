"""Traces small enough to be read: their events, made by hand, and how a message shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from labs_helpers.measure.trace import GPU_WORK, Event

MAIN, BACKWARD = 1, 2  # threads

# What stands in a trace beside the events that took time.
LABELS: tuple[Event, ...] = (
    {"ph": "M", "name": "process_name", "pid": 4711, "tid": 0, "args": {"name": "python"}},
    {"ph": "M", "name": "thread_name", "ts": 0.0, "pid": 4711, "tid": MAIN, "args": {"name": "thread 1 (python)"}},
)
ARROWS: tuple[Event, ...] = (
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "ts": 9.0, "pid": 4711, "tid": MAIN},
    {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 1, "ts": 14.0, "pid": 0, "tid": 7, "bp": "e"},
)


def trace(*events: Event) -> list[Event]:
    """`events` in this order, between labels and arrows."""
    return [*LABELS, *events, *ARROWS]


def op(name: str, ts: float, dur: float, id: int, tid: int = MAIN) -> Event:
    """An operation of PyTorch."""
    return _event("cpu_op", name, ts, dur, tid, id=id)


def launch(
    ts: float, correlation: int, id: int | None = None, tid: int = MAIN, dur: float = 1, name: str = "cudaLaunchKernel"
) -> Event:
    """What the CPU calls to start work."""
    return _event("cuda_runtime", name, ts, dur, tid, correlation, id)


def wait(ts: float, dur: float, correlation: int, tid: int = MAIN) -> Event:
    """What the CPU calls to wait for the GPU: a "cuda_runtime" event too, with a correlation that no work has."""
    return _event("cuda_runtime", "cudaDeviceSynchronize", ts, dur, tid, correlation)


def kernel(
    name: str, ts: float, dur: float, correlation: int, id: int | None = None, stream: int = 7, cat: str = "kernel"
) -> Event:
    """A piece of the GPU's work. As in real traces its tid is its stream."""
    event = _event(cat, name, ts, dur, stream, correlation, id)
    event["args"]["stream"] = stream
    return event


def memcpy(ts: float, dur: float, correlation: int, id: int | None = None, stream: int = 7) -> Event:
    return kernel("Memcpy HtoD", ts, dur, correlation, id, stream, "gpu_memcpy")


def memset(ts: float, dur: float, correlation: int, id: int | None = None, stream: int = 7) -> Event:
    return kernel("Memset", ts, dur, correlation, id, stream, "gpu_memset")


def part(name: str, ts: float, dur: float, id: int, tid: int = MAIN) -> Event:
    """A range that record_function drew on the CPU."""
    return _event("user_annotation", name, ts, dur, tid, id=id)


def shadow(name: str, ts: float, dur: float, id: int, stream: int = 7) -> Event:
    """A range's shadow over the GPU's work."""
    return _event("gpu_user_annotation", name, ts, dur, stream, id=id)


def _event(
    cat: str, name: str, ts: float, dur: float, tid: int, correlation: int | None = None, id: int | None = None
) -> Event:
    args: dict[str, Any] = {"correlation": correlation, "External id": id}
    given = {key: value for key, value in args.items() if value is not None}
    return {"ph": "X", "cat": cat, "name": name, "ts": float(ts), "dur": float(dur), "tid": tid, "args": given}


def of(events: Iterable[Event], *categories: str) -> list[Event]:
    """The events that took time, or those of `categories`."""
    return [event for event in events if event["ph"] == "X" and (not categories or event["cat"] in categories)]


def drawn(events: Iterable[Event], numbers: bool = True, width: int = 30) -> str:
    """The events that took time, a line each: where, a bar, from … to, what, and with `numbers` its ids."""
    timed = of(events)
    begin, end = min(e["ts"] for e in timed), max(e["ts"] + e["dur"] for e in timed)
    lines = []
    for event in sorted(timed, key=lambda e: (_on_gpu(e), e["tid"], e["ts"], -e["dur"])):
        first, last = (round((at - begin) * width / (end - begin)) for at in (event["ts"], event["ts"] + event["dur"]))
        first = min(first, width - 1)
        bar = f"{'·' * first}{'█' * max(1, last - first):·<{width - first}}"
        place = f"{'stream' if _on_gpu(event) else 'thread'} {event['tid']}"
        args = [f"{key} {event['args'][key]}" for key in ("External id", "correlation") if key in event["args"]]
        what = ", ".join([f"{event['cat']} {event['name']}", *args * numbers])
        lines.append(f"  {place:9} {bar} {event['ts']:g} … {event['ts'] + event['dur']:g}: {what}")
    return "\n".join(lines)


def _on_gpu(event: Event) -> bool:
    return event["cat"] in (*GPU_WORK, "gpu_user_annotation")
