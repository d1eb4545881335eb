"""What a kernel of attention may load: of K and V the tiles that one of a program's rows sees, each once."""

from functools import partial

import numpy as np

from labs_helpers.attention.lab04.checks.walks import wrong_walks
from labs_helpers.attention.tile_map import SKIPPED, tile_states
from labs_helpers.course.verdict import Run, Wrong, likely
from labs_helpers.course.verdict.causes import still_possible

KEPT = "once is enough: K's tile stays on the chip while it is needed."


def expect_visits(
    run: Run, loaded: dict, seen: np.ndarray, k, v, BLOCK_M: int, BLOCK_N: int, window=None, passed=None
) -> None:
    """Raises Wrong unless each program loads the tiles that its rows see, once, and no other.

    loaded: i → how often program (i, 0) loads each key, int (Lk,). seen: bool (Lq, Lk). k, v: (B, H, Lk, D). window:
    of a sliding window, its keys. passed: a list of cases, which this one joins; those before it rule causes out.
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
                raise Wrong(run.case, f"program ({i}, 0) has no queries, and loads keys.", cause=too_large)
            continue
        first, last = i * BLOCK_M, min((i + 1) * BLOCK_M, Lq) - 1
        program, needed = f"program ({i}, 0), queries {first} to {last},", seen[first : last + 1].any(0)
        if (missed := needed & (loads == 0)).any():
            raise Wrong(
                run.case,
                f"{program} never loads key {missed.argmax()}, which it sees: of {needed.sum()} keys that its rows see "
                f"it loads {(needed & ~missed).sum()}.",
                cause=cause(_why_missed(missed, needed, loads, grid)),
            )
        if loads.max() > 1:
            found = f"{program} loads key {loads.argmax()} {loads.max()} times"
            raise Wrong(run.case, found, cause=cause(_why_twice(run, loads, v)), advice=KEPT)
        # A program may start in the middle of a tile, if it does not load more for it.
        if (loads > 0).sum() > needed_tiles[i].sum():
            raise Wrong(
                run.case,
                f"{program} loads {(loads > 0).sum()} keys, {needed_tiles[i].sum()} are enough: it visits the tile of "
                f"key {((loads > 0) & ~needed_tiles[i]).argmax()}, of which no row sees anything.",
                cause=cause(
                    "a tile that is masked whole is computed all the same; start the loop later or end it earlier"
                ),
            )
    if passed is not None:
        passed.append((walks, fits))
    _expect_every_head(run, sum(loaded.values())[:, None], {"K": k, "V": v}, Lq)


def _expect_every_head(run: Run, times: np.ndarray, operands: dict, Lq: int) -> None:
    """times: how often each key is to be loaded, by all programs of a head, (Lk, 1)."""
    for name, tensor in operands.items():
        loads = run.counts(tensor).loads
        few, many = (loads < times).sum(), (loads > times).sum()
        if not few and not many:
            continue
        rows = (loads < times).any(-1).reshape(-1, loads.shape[2])  # of each head, too rarely loaded
        cause = ()
        if few and many:
            cause = f"another batch or head is read, as with another tensor's strides; {name} has strides of its own"
        elif few and not loads.any():
            cause = f"{name} is never loaded: what is loaded in its place is another tensor"
        elif few and not rows[:, :Lq].any() and rows[:, Lq:].all():
            cause = f"{name}'s load is masked at Lq; {name} has Lk rows"
        raise Wrong(
            run.case,
            f"{few:,} elements of {name} are loaded too rarely and {many:,} too often.",
            cause=cause,
            advice="each program loads the tiles of K and of V that it visits, once.",
        )


def _why_twice(run: Run, loads: np.ndarray, v) -> str:
    if not run.counts(v).loads.any():
        return "V is never loaded: its tile is read through K's pointer"
    if loads.max() == 2 and (loads[loads > 0] == 2).all():
        return "K is loaded twice in each step"
    return ""


def _why_missed(missed, needed, loads, grid: dict) -> str:
    if not any(other.any() for other in grid.values()):
        return "the loop has no step, or what is loaded as K is not K"
    if loads.max() > 1:
        return "every step loads the same tile: `start` has to enter the pointers"
    where = "ends too early" if missed[np.flatnonzero(needed)[-1]] else "starts too late"
    return f"the loop {where}; a tile that is seen in part is needed too"
