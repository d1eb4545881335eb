"""What common mistakes with a mask make of attention: a diagonal that is off, a row that has seen nothing."""

from __future__ import annotations

import torch

from labs_helpers.attention.lab04.checks.causes import Exact
from labs_helpers.attention.tile_map import SKIPPED, WHOLE, tile_states


def mask_slips(exact: Exact, window: tuple, BLOCK_M: int, BLOCK_N: int) -> tuple[dict, dict]:
    """(of o, of lse): cause → what o or lse would be. window: (keys that a query sees,) or () for all before it."""
    masked, nan = _wrong_masks(exact, window, BLOCK_M, BLOCK_N), _nan_rows(exact, BLOCK_M, BLOCK_N)
    return (
        {text: exact.o.where(~rows[:, None], torch.nan) for text, rows in nan.items()}
        | {text: wrong.o for text, wrong in masked.items()},
        {text: exact.lse.where(~rows, torch.nan) for text, rows in nan.items()}
        | {text: wrong.lse for text, wrong in masked.items()},
    )


def _wrong_masks(exact: Exact, window: tuple, BLOCK_M: int, BLOCK_N: int) -> dict:
    """Cause → attention under the mask that a common mistake makes: over the tiles that are visited, where what is
    past the end of K and V is 0."""
    Lq, Lk = exact.seen.shape
    padding = (0, 0, 0, -Lk % BLOCK_N)
    exact = exact.but(k=torch.nn.functional.pad(exact.k, padding), v=torch.nn.functional.pad(exact.v, padding))
    distance = torch.arange(Lq)[:, None] + Lk - Lq - torch.arange(exact.k.shape[2])
    near = distance < window[0] if window else torch.tensor(True)
    causal = distance >= 0
    states = torch.from_numpy(tile_states(exact.seen.numpy(), BLOCK_M, BLOCK_N))
    states = states.repeat_interleave(BLOCK_M, 0)[:Lq].repeat_interleave(BLOCK_N, 1)
    masks = {
        "the diagonal starts from the top left; from the bottom right, query r sees keys up to r + Lk − Lq": (
            distance >= Lk - Lq
        )
        & (distance < window[0] + Lk - Lq if window else True),
        "the diagonal is one too far left: a query sees the key at its own place": (distance > 0) & near,
        "the diagonal is one too far right: a query sees a key after its own place": (distance >= -1) & near,
        "nothing is masked": torch.ones_like(causal),
        "the mask is turned around: a query sees the keys up to its own place": distance <= 0,
    }
    if window:
        masks |= {
            "the window is one too long: `window` keys are seen, the query's own place among them": causal
            & (distance <= window[0]),
            "the window is one too short: `window` keys are seen, the query's own place among them": causal
            & (distance < window[0] - 1),
            "the window is not applied": causal,
            "the window reaches to both sides": (distance.abs() < window[0]),
            "the causal mask is missing": near,
        }
    visited = states != SKIPPED
    zeros = exact.but(seen=visited)
    zeros.scores = torch.where(causal & near, zeros.scores, 0.0).masked_fill(~visited, -torch.inf)
    everywhere = {text: exact.but(seen=mask & visited) for text, mask in masks.items()}
    at_edges = {
        f"{text} (in the tiles that are masked)": exact.but(seen=(mask | (states == WHOLE)) & visited)
        for text, mask in masks.items()
    }
    early = {
        text: exact.but(seen=((causal & near) | tiles) & visited)
        for text, tiles in _wrongly_whole(Lq, Lk, exact.k.shape[2], window, BLOCK_M, BLOCK_N).items()
    }
    return everywhere | at_edges | early | {"a score that is not seen is 0; exp makes 0 of −inf only": zeros}


def _wrongly_whole(Lq: int, Lk: int, padded: int, window: tuple, BLOCK_M: int, BLOCK_N: int) -> dict:
    """Cause → bool (Lq, padded): the scores in tiles that are taken without a mask."""
    first, begins = torch.arange(Lq)[:, None] // BLOCK_M * BLOCK_M, torch.arange(padded) // BLOCK_N * BLOCK_N
    ends, full, end = begins + BLOCK_N, first + 1 + Lk - Lq, (first + BLOCK_M + Lk - Lq).clamp(max=Lk)
    inside = begins >= end - window[0] if window else torch.tensor(True)
    tiles = {
        "`full` is too large by one: the program's first row sees the keys below first + 1 + Lk − Lq": (
            ends <= full + 1
        )
        & inside,
        "`full` is where the last row's keys end; before it the first row has to see everything too": (ends <= end)
        & inside,
    }
    if window:
        tiles |= {
            "the tiles on the window's first edge need the mask too": ends <= full,
            "the window's first edge is one too far left: the last row of a program does not see that key": (
                ends <= full
            )
            & (begins >= end - window[0] - 1),
        }
    return tiles


def _nan_rows(exact: Exact, BLOCK_M: int, BLOCK_N: int) -> dict:
    """Cause → the rows that are NaN then."""
    Lq, Lk = exact.seen.shape
    blind = ~exact.seen.any(1)
    ragged = torch.zeros(Lq, dtype=torch.bool)  # rows whose program visits a tile that sticks out over the last key
    late = torch.zeros(Lq, dtype=torch.bool)  # rows that see nothing of the first tile which their program visits
    for first in range(0, Lq, BLOCK_M):
        rows = slice(first, first + BLOCK_M)
        if len(keys := exact.seen[rows].any(0).nonzero()):
            start = int(keys[0]) // BLOCK_N * BLOCK_N
            late[rows] = ~exact.seen[rows, start : start + BLOCK_N].any(1)
            ragged[rows] = bool(Lk % BLOCK_N) and int(keys[-1]) >= Lk // BLOCK_N * BLOCK_N
    difference = "−inf − (−inf) is NaN: subtract 0 from the scores of a row that has seen no key yet"
    return {
        "what is past the last key is not 0: P is 0 there, but 0 · NaN is NaN; give V's load other=0.0": ragged,
        difference: late,
        "0/0 in the rows that see no key: divide by 1 where l_i is 0": blind,
    }
