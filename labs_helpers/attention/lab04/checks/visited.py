"""What a kernel of attention may load: of K and V the tiles that one of a program's rows sees, each once."""

import numpy as np

from labs_helpers.attention.tile_map import SKIPPED, tile_states
from labs_helpers.course.verdict import Run, Wrong

FORGOTTEN = "its bound forgets Lk − Lq"


def expect_visits(run: Run, loaded: dict, seen: np.ndarray, k, v, BLOCK_M: int, BLOCK_N: int) -> None:
    """Raises Wrong unless each program loads the tiles that its rows see, once, and no other.

    loaded: i → how often program (i, 0) loads each key, int (Lk,). seen: bool (Lq, Lk). k, v: (B, H, Lk, D).
    """
    Lq, Lk = seen.shape
    oblong = Lq != Lk and not seen.all()  # with a mask; a case of Lq = Lk has come before
    needed_tiles = np.repeat(tile_states(seen, BLOCK_M, BLOCK_N) != SKIPPED, BLOCK_N, axis=1)[:, :Lk]
    for i, loads in loaded.items():
        if i * BLOCK_M >= Lq:
            if loads.any():
                cause = "the grid is too large; along axis 0 it has triton.cdiv(Lq, BLOCK_M) programs"
                raise Wrong(run.case, f"program ({i}, 0) has no queries, and loads keys.", cause=cause)
            continue
        first, last = i * BLOCK_M, min((i + 1) * BLOCK_M, Lq) - 1
        program, needed = f"program ({i}, 0), queries {first} to {last},", seen[first : last + 1].any(0)
        if (missed := needed & (loads == 0)).any():
            raise Wrong(
                run.case,
                f"{program} never loads key {missed.argmax()}, which it sees: of {needed.sum()} keys that its rows see "
                f"it loads {(needed & ~missed).sum()}.",
                cause=_why_missed(missed, needed, loads, oblong),
            )
        if loads.max() > 1:
            raise Wrong(
                run.case,
                f"{program} loads key {loads.argmax()} {loads.max()} times",
                advice="once is enough: K's tile stays on the chip while it is needed.",
            )
        # A program may start in the middle of a tile, if it does not load more for it.
        if (loads > 0).sum() > needed_tiles[i].sum():
            raise Wrong(
                run.case,
                f"{program} loads {(loads > 0).sum()} keys, {needed_tiles[i].sum()} are enough: it visits the tile of "
                f"key {((loads > 0) & ~needed_tiles[i]).argmax()}, of which no row sees anything.",
                cause="a tile that is masked whole is computed all the same; "
                + (f"where Lq = Lk it is not: {FORGOTTEN}" if oblong else "start the loop later or end it earlier"),
            )
    times = sum(loaded.values())[:, None]
    for name, tensor in (("K", k), ("V", v)):
        loads = run.counts(tensor).loads
        few, many = (loads < times).sum(), (loads > times).sum()
        if few or many:
            raise Wrong(
                run.case,
                f"{few:,} elements of {name} are loaded too rarely and {many:,} too often.",
                cause="another batch or head is read, as where another tensor's stride is taken; "
                f"{name} has strides of its own"
                if few and many
                else (),
                advice="each program loads the tiles of K and of V that it visits, once.",
            )


def _why_missed(missed, needed, loads, oblong: bool) -> str:
    if not loads.any():
        return "the loop has no step, or what is loaded as K is not K"
    if loads.max() > 1:
        return "every step loads the same tile: `start` has to enter the pointers"
    where = "ends too early" if missed[np.flatnonzero(needed)[-1]] else "starts too late"
    if oblong:
        return f"the loop {where}, and only where Lq ≠ Lk: {FORGOTTEN}"
    return f"the loop {where}; a tile that is seen in part is needed too"
