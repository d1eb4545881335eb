"""Write traces as short text, one line or a few per event, and draw them in messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from labs_helpers.measure.trace import GPU_WORK, Event

MAIN, STREAM = 1, 7  # the thread and stream of events that name none
ON_GPU = (*GPU_WORK, "gpu_user_annotation")

# The entries of a trace that take no time.
LABELS: tuple[Event, ...] = (
    {"ph": "M", "name": "process_name", "pid": 4711, "tid": 0, "args": {"name": "python"}},
    {"ph": "M", "name": "thread_name", "ts": 0.0, "pid": 4711, "tid": MAIN, "args": {"name": "thread 1 (python)"}},
)
ARROWS: tuple[Event, ...] = (
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "ts": 9.0, "pid": 4711, "tid": MAIN},
    {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 1, "ts": 14.0, "pid": 0, "tid": 7, "bp": "e"},
)
# op aten::mm 3+20 #1 > launch 8 =4 > kernel gemm 12+13 @13
EVENT = re.compile(r"(\w+)(?: ([^\d\s]\S*))? ([\d.]+)(?:\+([\d.]+))?(?: #(\d+))?(?: =(\d+))?(?: @(\d+))?")
CATEGORIES = {  # word: category and name
    "kernel": ("kernel", ""),
    "memcpy": ("gpu_memcpy", "Memcpy HtoD"),
    "memset": ("gpu_memset", "Memset"),
    "op": ("cpu_op", ""),
    "part": ("user_annotation", ""),  # a range that record_function drew on the CPU
    "shadow": ("gpu_user_annotation", ""),  # and over the GPU's work
    "launch": ("cuda_runtime", "cudaLaunchKernel"),
    "copy": ("cuda_runtime", "cudaMemcpyAsync"),
    "set": ("cuda_runtime", "cudaMemsetAsync"),
    "graph": ("cuda_runtime", "cudaGraphLaunch"),
    "record": ("cuda_runtime", "cudaEventRecord"),
    "wait": ("cuda_runtime", "cudaDeviceSynchronize"),  # with a correlation that no work carries
}


def trace(text: str) -> list[Event]:
    """Parse `text` and return its events in order.

    An event is a word of CATEGORIES, a name, start+duration in µs (duration 1 by default), #External id, =correlation,
    and @thread or @stream. A semicolon or a new line separates events. > precedes what an event launched, which
    inherits the External id and the correlation unless it names others. A label may precede an event.
    """
    events: list[Event] = []
    parts = ["", *re.split(r"\s*([>;\n])\s*", text.strip())]
    for sign, words in zip(parts[::2], parts[1::2], strict=True):
        if not (read := EVENT.fullmatch(words)):
            raise ValueError(f"{words!r} is no event")
        word, name, ts, dur, *numbers, tid = read.groups()
        launcher = events[-1]["args"] if sign == ">" else {}
        id, correlation = (
            launcher.get(key) if number is None else int(number)
            for key, number in zip(("External id", "correlation"), numbers, strict=True)
        )
        cat, usual = CATEGORIES[word]
        events.append(event(cat, name or usual, float(ts), float(dur or 1), int(tid or 0), id, correlation))
    return [*LABELS, *events, *ARROWS]


def event(
    cat: str, name: str, ts: float, dur: float, tid: int = 0, id: int | None = None, correlation: int | None = None
) -> Event:
    """Return an event that took time. As in real traces, the tid of the GPU's work is its stream."""
    args = {"correlation": correlation, "External id": id}
    given: dict[str, Any] = {key: value for key, value in args.items() if value is not None}
    tid = tid or (STREAM if cat in ON_GPU else MAIN)
    if cat in GPU_WORK:
        given["stream"] = tid
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": given}


def of(events: Iterable[Event], *categories: str) -> list[Event]:
    """Return the events that took time, or those of `categories`."""
    return [event for event in events if event["ph"] == "X" and (not categories or event["cat"] in categories)]


def drawn(events: Iterable[Event], numbers: bool = True, width: int = 30) -> str:
    """Draw the events that took time, one line each: the place, a bar, from … to, the name and, with `numbers`, the
    ids."""
    timed = of(events)
    begin, end = min(e["ts"] for e in timed), max(e["ts"] + e["dur"] for e in timed)
    lines = []
    for event in sorted(timed, key=lambda e: (e["cat"] in ON_GPU, e["tid"], e["ts"], -e["dur"])):
        first, last = (round((at - begin) * width / (end - begin)) for at in (event["ts"], event["ts"] + event["dur"]))
        first = min(first, width - 1)
        bar = f"{'·' * first}{'█' * max(1, last - first):·<{width - first}}"
        place = f"{'stream' if event['cat'] in ON_GPU else 'thread'} {event['tid']}"
        args = [f"{key} {event['args'][key]}" for key in ("External id", "correlation") if key in event["args"]]
        what = ", ".join([f"{event['cat']} {event['name']}", *args * numbers])
        lines.append(f"  {place:9} {bar} {event['ts']:g} … {event['ts'] + event['dur']:g}: {what}")
    return "\n".join([*lines, f"  from the first start to the last end: {end - begin:g} µs"])
