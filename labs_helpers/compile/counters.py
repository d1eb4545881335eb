"""Counters in GPU memory that a kernel finds at zero and leaves at zero, so that no launch has to clear them."""

from __future__ import annotations

import threading

import torch

RESERVE = 2**20  # counters for launches in CUDA graphs, 4 MB per GPU
_counters: dict[tuple[int, int], torch.Tensor] = {}  # (device, stream) → zeros
_reserves: dict[int, Reserve] = {}


def counters(count: int, device: torch.device) -> torch.Tensor:
    """Return int32 zeros, `count` or more, which every launch has to leave at zero.

    Launches in one stream run one after another and share their counters. A CUDA graph may be replayed while the stream
    that captured it is busy, so a captured launch gets its own counters permanently. If those run out, or if nothing
    was launched on this GPU before, the graph clears new zeros at every replay.
    """
    if device.type != "cuda":
        return torch.zeros(count, dtype=torch.int32, device=device)
    index = device.index
    if torch._C._cuda_isCurrentStreamCapturing():
        reserve = _reserves.get(index)
        mine = reserve.take(count) if reserve else None
        return torch.zeros(count, dtype=torch.int32, device=device) if mine is None else mine
    # torch.cuda.current_stream creates an object, which takes several times as long.
    key = (index, torch._C._cuda_getCurrentRawStream(index))
    known = _counters.get(key)
    if known is None or known.numel() < count:
        if index not in _reserves:
            zeros = torch.zeros(RESERVE, dtype=torch.int32, device=device)
            torch.cuda.synchronize(device)  # once, because a graph is replayed in any stream
            _reserves[index] = Reserve(zeros)
        known = _counters[key] = torch.zeros(max(count, 1024), dtype=torch.int32, device=device)
    return known


class Reserve:
    """Counters that are handed out once each, to one thread at a time."""

    def __init__(self, zeros: torch.Tensor) -> None:
        self._zeros, self._used, self._lock = zeros, 0, threading.Lock()

    def take(self, count: int) -> torch.Tensor | None:
        """Return `count` unused counters, aligned to 16 bytes; None if fewer are left."""
        with self._lock:
            first = self._used
            self._used = min(first + -(-count // 4) * 4, self._zeros.numel())
            return self._zeros[first : first + count] if self._used - first >= count else None
