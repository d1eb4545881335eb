"""Which program visits which keys: what a mask asks for, and what a kernel does."""

from __future__ import annotations

import numpy as np

from labs_helpers.compile.interpreter_process import call_interpreted
from labs_helpers.course.meter import metered
from labs_helpers.measure.machine import this_machine

SKIPPED, WHOLE, MASKED = 0, 1, 2


def visible(Lq: int, Lk: int, causal: bool = True, window: int | None = None) -> np.ndarray:
    """Whether query i sees key j, bool (Lq, Lk): j ≤ i + Lk − Lq if causal, and the `window` last of those."""
    distance = np.arange(Lq)[:, None] + Lk - Lq - np.arange(Lk)
    seen = distance >= 0 if causal else np.ones((Lq, Lk), bool)
    return seen & (distance < window) if window else seen


def tile_states(seen: np.ndarray, BLOCK_M: int, BLOCK_N: int) -> np.ndarray:
    """For each (query tile, key tile): SKIPPED where no query sees a key, WHOLE where each sees all, else MASKED."""
    Lq, Lk = seen.shape
    padded = np.pad(np.pad(seen, ((0, -Lq % BLOCK_M), (0, 0)), "edge"), ((0, 0), (0, -Lk % BLOCK_N)))
    tiles = padded.reshape(padded.shape[0] // BLOCK_M, BLOCK_M, padded.shape[1] // BLOCK_N, BLOCK_N)
    some, all_ = tiles.any((1, 3)), tiles.all((1, 3))
    return np.where(all_, WHOLE, np.where(some, MASKED, SKIPPED))


def visits(function, q, k, v, *rest, **keywords) -> np.ndarray:
    """How often program (i, 0) loads each key: int (query tiles, Lk), as counted while `function(q, k, v, …)` runs.

    On a GPU the call is made in the interpreter of another process, on copies. Raises what the call raises.
    """
    if this_machine().interpreted:
        return _visits(function, q, k, v, *rest, **keywords)
    return visits_elsewhere(function, q, k, v, *rest, **keywords)


def visits_elsewhere(function, q, k, v, *rest, **keywords) -> np.ndarray:
    """The same, always in the interpreter of another process."""
    return call_interpreted(_visits, function, q, k, v, *rest, **keywords)


def _visits(function, q, k, v, *rest, **keywords) -> np.ndarray:
    # The addresses of K's first column, head 0 of batch 0: one a key.
    keys = k.data_ptr() + np.arange(k.shape[2]) * k.stride(2) * k.element_size()
    found: dict[int, np.ndarray] = {}
    with metered() as meter:
        counted = meter.count

        def count(kind, addresses, mask, grid_idx):
            counted(kind, addresses, mask, grid_idx)
            loads = found.setdefault(grid_idx[0], np.zeros(len(keys), int))
            if kind == "load" and grid_idx[1] == 0:
                touched = addresses[np.broadcast_to(mask, addresses.shape).astype(bool)].astype(np.int64)
                loads += (touched[:, None] == keys).sum(0)

        meter.count = count
        function(q, k, v, *rest, **keywords)
    return np.array([found[i] for i in sorted(found)])
