"""Counters in GPU memory that a kernel finds at zero and leaves at zero, so that no launch has to clear them."""

from __future__ import annotations

import threading

import torch

RESERVE = 2**20  # counters for launches in CUDA graphs, 4 MB a GPU
_counters: dict[tuple[int, int], torch.Tensor] = {}  # (device, stream) → zeros
_reserves: dict[int, Reserve] = {}


def counters(count: int, device: torch.device) -> torch.Tensor:
    """int32, `count` zeros or more, which every launch leaves at zero.

    Launches in one stream follow each other and share theirs. A CUDA graph may be replayed beside the stream in which
    it was captured, so a launch that is captured gets some of its own, for good; where those have run out, or nothing
    was launched on this GPU before, zeros that the graph writes anew each time.
    """
    if device.type != "cuda":
        return torch.zeros(count, dtype=torch.int32, device=device)
    index = device.index
    if torch._C._cuda_isCurrentStreamCapturing():
        reserve = _reserves.get(index)
        mine = reserve.take(count) if reserve else None
        return torch.zeros(count, dtype=torch.int32, device=device) if mine is None else mine
    # torch.cuda.current_stream makes an object of it, which takes several times as long.
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
    """Counters handed out once each, by threads one after the other."""

    def __init__(self, zeros: torch.Tensor) -> None:
        self._zeros, self._used, self._lock = zeros, 0, threading.Lock()

    def take(self, count: int) -> torch.Tensor | None:
        """`count` of those that are left, from a multiple of 16 bytes on; None where there are fewer."""
        with self._lock:
            first = self._used
            self._used = min(first + -(-count // 4) * 4, self._zeros.numel())
            return self._zeros[first : first + count] if self._used - first >= count else None
