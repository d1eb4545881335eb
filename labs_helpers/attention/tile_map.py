"""Masks of attention: which query sees which key, and which tiles of the scores a kernel has to compute."""

from __future__ import annotations

import numpy as np

SKIPPED, WHOLE, MASKED = 0, 1, 2


def visible(Lq: int, Lk: int, causal: bool = True, window: int | None = None) -> np.ndarray:
    """Return whether query i sees key j, bool (Lq, Lk): j ≤ i + Lk − Lq if causal, only the last `window` of these."""
    distance = np.arange(Lq)[:, None] + Lk - Lq - np.arange(Lk)
    seen = distance >= 0 if causal else np.ones((Lq, Lk), bool)
    return seen & (distance < window) if window else seen


def tile_states(seen: np.ndarray, BLOCK_M: int, BLOCK_N: int) -> np.ndarray:
    """Classify each (query tile, key tile): SKIPPED if no query sees a key, WHOLE if all see all, else MASKED."""
    Lq, Lk = seen.shape
    padded = np.pad(np.pad(seen, ((0, -Lq % BLOCK_M), (0, 0)), "edge"), ((0, 0), (0, -Lk % BLOCK_N)))
    tiles = padded.reshape(padded.shape[0] // BLOCK_M, BLOCK_M, padded.shape[1] // BLOCK_N, BLOCK_N)
    some, all_ = tiles.any((1, 3)), tiles.all((1, 3))
    return np.where(all_, WHOLE, np.where(some, MASKED, SKIPPED))
