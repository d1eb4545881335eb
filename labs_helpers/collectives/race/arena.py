"""Buffers that move on from one run to the next, so that a benchmark does not find its data in the cache."""

from __future__ import annotations

import numpy as np

LEAST = 32 * 2**20  # bytes, more than a core's own caches hold
LINE = 64  # bytes of a cache line


class Arena:
    """A stretch of float64 of at least `LEAST` bytes and twice the largest buffer; `take` returns the next piece.

    It holds the small integers i % 7 + offset, so that sums are exact in any order.
    """

    def __init__(self, largest: int, offset: int = 0, dtype="float64"):
        """Allocate the arena. largest: bytes of the largest buffer that will be taken."""
        itemsize = np.dtype(dtype).itemsize
        self._line = max(1, LINE // itemsize)
        count = max(LEAST, 2 * largest + LINE) // itemsize
        # Write to it, so that no page is touched for the first time while the clock runs.
        self._data = np.tile(np.arange(offset, offset + 7).astype(dtype), -(-count // 7))[:count]
        self._next = 0

    def take(self, count: int) -> np.ndarray:
        """Return the next `count` elements, contiguous and starting on a new cache line; ValueError if there are not
        enough."""
        if count > self._data.size:
            raise ValueError(f"count is {count}; the arena has {self._data.size} elements")
        if self._next + count > self._data.size:
            self._next = 0
        start = self._next
        self._next += -(-max(count, 1) // self._line) * self._line
        return self._data[start : start + count]
