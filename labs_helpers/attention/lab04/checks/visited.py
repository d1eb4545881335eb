"""Check that a program loads only the tiles of K and V that one of its rows sees, each tile once."""

from functools import partial

import numpy as np

from labs_helpers.attention.lab04.checks.walks import wrong_walks
from labs_helpers.attention.tile_map import SKIPPED, tile_states
from labs_helpers.course.verdict import Run, Wrong, likely
from labs_helpers.course.verdict.causes import still_possible

KEPT = "load each tile once; it stays on the chip while you need it."


def expect_visits(
    run: Run, loaded: dict, seen: np.ndarray, k, v, BLOCK_M: int, BLOCK_N: int, window=None, passed=None
) -> None:
    """Raise Wrong unless each program loads the tiles that its rows see, once, and no others.

    loaded: i → how often program (i, 0) loads each key, int (Lk,). seen: bool (Lq, Lk). k, v: (B, H, Lk, D). window:
    number of keys in a sliding window. passed: the earlier cases, which rule out causes; this case is appended.
    """
    Lq, Lk = seen.shape
    needed_tiles = np.repeat(tile_states(seen, BLOCK_M, BLOCK_N) != SKIPPED, BLOCK_N, axis=1)[:, :Lk]
    grid = {i: loads for i, loads in loaded.items() if i * BLOCK_M < Lq}

    walks = partial(wrong_walks, Lq, Lk, BLOCK_M, BLOCK_N, window, not seen.all())

    def fits(walk) -> bool:
        return all(np.array_equal(grid[i], walk[i]) for i in grid)

    def cause(otherwise: str) -> tuple[str, ...]:
        known = ((other_walks(), is_right) for other_walks, is_right in passed or ())
        return likely(still_possible(walks(), known), fits) or tuple(filter(None, [otherwise]))

    for i, loads in loaded.items():
        if i not in grid:
            if loads.any():
                too_large = "the grid is too large; along axis 0 it has triton.cdiv(Lq, BLOCK_M) programs"
                raise Wrong(run.case, f"program ({i}, 0) has no queries but loads keys.", cause=too_large)
            continue
        first, last = i * BLOCK_M, min((i + 1) * BLOCK_M, Lq) - 1
        program, needed = f"program ({i}, 0), queries {first} to {last},", seen[first : last + 1].any(0)
        if (missed := needed & (loads == 0)).any():
            raise Wrong(
                run.case,
                f"{program} never loads key {missed.argmax()}, which one of its rows sees. Its rows see "
                f"{needed.sum()} keys; it loads {(needed & ~missed).sum()} of them.",
                cause=cause(_why_missed(missed, needed, loads, grid)),
            )
        if loads.max() > 1:
            found = f"{program} loads key {loads.argmax()} {loads.max()} times"
            raise Wrong(run.case, found, cause=cause(_why_twice(run, loads, v)), advice=KEPT)
        # A program may start in the middle of a tile if it does not load more keys because of that.
        if (loads > 0).sum() > needed_tiles[i].sum():
            raise Wrong(
                run.case,
                f"{program} loads {(loads > 0).sum()} keys, but {needed_tiles[i].sum()} are enough: it visits the tile "
                f"of key {((loads > 0) & ~needed_tiles[i]).argmax()}, in which none of its rows sees a key.",
                cause=cause("the loop computes a tile that is masked completely; start it later or end it earlier"),
            )
    if passed is not None:
        passed.append((walks, fits))
    _expect_every_head(run, sum(loaded.values())[:, None], {"K": k, "V": v}, Lq)


def _expect_every_head(run: Run, times: np.ndarray, operands: dict, Lq: int) -> None:
    """Raise Wrong unless every head loads each key as often as `times`, (Lk, 1), says."""
    for name, tensor in operands.items():
        loads = run.counts(tensor).loads
        few, many = (loads < times).sum(), (loads > times).sum()
        if not few and not many:
            continue
        rows = (loads < times).any(-1).reshape(-1, loads.shape[2])  # rows of each head that are loaded too rarely
        cause = ()
        if few and many:
            cause = f"another batch or head is read, perhaps with another tensor's strides; use {name}'s own strides"
        elif few and not loads.any():
            cause = f"{name} is never loaded; another tensor is loaded in its place"
        elif few and not rows[:, :Lq].any() and rows[:, Lq:].all():
            cause = f"{name}'s load is masked at Lq; {name} has Lk rows"
        raise Wrong(
            run.case,
            f"{few:,} elements of {name} are loaded too rarely and {many:,} too often.",
            cause=cause,
            advice="each program loads each tile of K and V that it visits once.",
        )


def _why_twice(run: Run, loads: np.ndarray, v) -> str:
    if not run.counts(v).loads.any():
        return "V is never loaded; its tile is read through K's pointer"
    if loads.max() == 2 and (loads[loads > 0] == 2).all():
        return "K is loaded twice in each step"
    return ""


def _why_missed(missed, needed, loads, grid: dict) -> str:
    if not any(other.any() for other in grid.values()):
        return "the loop makes no step, or the tensor loaded as K is not K"
    if loads.max() > 1:
        return "every step loads the same tile; add `start` to the pointers"
    where = "ends too early" if missed[np.flatnonzero(needed)[-1]] else "starts too late"
    return f"the loop {where}; it also needs tiles that are only partly visible"
