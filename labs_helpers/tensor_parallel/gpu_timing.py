"""Times on the ranks of torch.distributed, on GPUs and on CPUs: steps, and the all-reduces in them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist

from labs_helpers.measure.timing import Timing

ALL_REDUCES = tuple(4**i for i in range(5, 15))  # bytes: 1 KB to 256 MB


def all_reduces(
    groups: Mapping[str, Any],
    dtype: torch.dtype,
    device: torch.device,
    sizes: Iterable[int] = ALL_REDUCES,
    runs: int = 20,
) -> list[dict[str, Any]]:
    """A record per process group of several ranks and per size in bytes; all groups of a name at once. Every rank calls
    it."""
    records = []
    for name, group in groups.items():
        ranks = dist.get_world_size(group)
        for nbytes in sizes if ranks > 1 else ():
            x = torch.zeros(nbytes // dtype.itemsize, dtype=dtype, device=device)

            def call(x: torch.Tensor = x, group: Any = group) -> None:
                dist.all_reduce(x, group=group)

            taken = [timed(call, device) for _ in range(3 + runs)][3:]
            records.append(
                {"kind": "all_reduce", "group": name, "ranks": ranks, "bytes": nbytes} | times("call", taken)
            )
    return records


def timed(function: Callable[[], object], device: torch.device) -> float:
    """Seconds, with nothing queued before and nothing left to do after; all ranks begin together."""
    dist.barrier()
    _wait(device)
    start = perf_counter()
    function()
    _wait(device)
    return perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


@contextmanager
def collected_between() -> Iterator[Callable[[], object]]:
    """Within it Python collects cycles only where the function that this yields is called: by itself it would look
    through the objects of all candidates in the time of one."""
    gc.collect()
    gc.freeze()  # what is there by now stays, and need not be looked at again
    gc.disable()
    try:
        yield gc.collect
    finally:
        gc.enable()
        gc.unfreeze()


def times(name: str, seconds: list[float]) -> dict[str, Any]:
    """Median and spread in ms of the rank that takes the longest."""
    timings = gathered(Timing.of([1e3 * s for s in seconds]))
    slowest = max(timings, key=lambda timing: timing.median_ms)
    return {f"{name}_ms": slowest.median_ms, f"{name}_p20_ms": slowest.p20_ms, f"{name}_p80_ms": slowest.p80_ms,
            "runs": slowest.runs}  # fmt: skip


def gathered(value: Any) -> list[Any]:
    """Every rank's value, on every rank."""
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values
