"""Loops over the keys with wrong bounds, and the keys that they load, so that a check can name the wrong bound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

FORGOTTEN = "omits Lk − Lq: the last query's own key is Lk − 1"
END = "`end` is first + BLOCK_M + Lk − Lq, the first key that no row of the program sees"
BEGIN = "the first row's first key is first + Lk − Lq − window + 1; start at the tile that holds it"
COUNTED = "`start` counts tiles instead of keys; use range(0, end, BLOCK_N)"


def wrong_walks(
    Lq: int, Lk: int, BLOCK_M: int, BLOCK_N: int, window: int | None, causal: bool
) -> Iterator[tuple[str, dict]]:
    """Yield (sentence, i → how often program (i, 0) loads each key with this mistake, int (Lk,))."""
    corner, programs = Lk - Lq, range(-(-Lq // BLOCK_M))

    def end(first):
        return min(first + BLOCK_M + corner, Lk) if causal else Lk

    def begin(first, edge=None):
        edge = first + corner - window + 1 if edge is None and window else edge
        return max(edge, 0) // BLOCK_N * BLOCK_N if window else 0

    for width in {BLOCK_M, *(n for n in (16, 32, 64) if n < Lk)} - {BLOCK_N}:
        what = f"BLOCK_M or the number {width}" if width == BLOCK_M else f"the number {width}"
        for step in {BLOCK_N, width}:
            walks = [range(begin(i * BLOCK_M), end(i * BLOCK_M), step) for i in programs]
            sentence = f"{what} is used instead of BLOCK_N; a key tile has BLOCK_N keys"
            yield sentence, {i: _loads(walks[i], width, Lk, Lk) for i in programs}
    for sentence, begins, ends, step in _bounds(begin, end, corner, Lq, Lk, BLOCK_M, BLOCK_N, window, causal):
        walks = [range(begins(i * BLOCK_M), ends(i * BLOCK_M), step) for i in programs]
        for masked_at_end in (False, True):
            yield sentence, {i: _loads(walks[i], BLOCK_N, Lk, walks[i].stop if masked_at_end else Lk) for i in programs}


def _bounds(begin, end, corner, Lq, Lk, BLOCK_M, BLOCK_N, window, causal):
    """Yield (sentence, begin and end as functions of `first`, step)."""
    yield COUNTED, begin, lambda f: end(f) // BLOCK_N, 1
    yield COUNTED, begin, lambda f: -(-end(f) // BLOCK_N), 1
    yield "the loop steps by BLOCK_M; a key tile has BLOCK_N keys", begin, end, BLOCK_M
    yield "the loop ends at Lq; the keys end at Lk", begin, lambda f: min(end(f), Lq), BLOCK_N
    yield "the last tile of keys is left out", begin, lambda f: end(f) - BLOCK_N, BLOCK_N
    yield "the first tile of keys is left out", lambda f: begin(f) + BLOCK_N, end, BLOCK_N
    if not causal:
        return

    def first_unseen(f):
        return f + BLOCK_M + corner

    yield f"the loop ends a key too early: {END}", begin, lambda f: min(first_unseen(f) - 1, Lk), BLOCK_N
    yield f"the loop ends a key too late: {END}", begin, lambda f: min(first_unseen(f) + 1, Lk), BLOCK_N

    for sentence, bound in (
        (f"its end omits BLOCK_M: {END}", lambda f: f + corner),
        (f"the loop ends with the first row's keys: {END}", lambda f: f + 1 + corner),
        (f"its end {FORGOTTEN}", lambda f: f + BLOCK_M),
        (f"its end has Lk − Lq with the wrong sign: {END}", lambda f: f + BLOCK_M - corner),
        (f"its end uses BLOCK_N instead of BLOCK_M: {END}", lambda f: f + BLOCK_N + corner),
        (
            "its end is rounded down to whole tiles, which leaves out the tile on the diagonal",
            lambda f: end(f) // BLOCK_N * BLOCK_N,
        ),
        ("the loop continues to Lk; every tile after `end` is masked completely", lambda f: Lk),
        (f"the loop ends a tile too late: {END}", lambda f: first_unseen(f) + BLOCK_N),
    ):
        yield sentence, begin, lambda f, bound=bound: min(bound(f), Lk), BLOCK_N
    if window:
        edges = (
            (f"the loop starts a key too early: {BEGIN}", lambda f: f + corner - window),
            (f"the loop starts a key too late: {BEGIN}", lambda f: f + corner - window + 2),
            (f"its start {FORGOTTEN}", lambda f: f - window + 1),
            (f"its start has Lk − Lq with the wrong sign: {BEGIN}", lambda f: f - corner - window + 1),
            (
                "the loop starts at the last row's first key; the first row's first key is earlier",
                lambda f: f + BLOCK_M + corner - window,
            ),
            (f"its start omits the window: {BEGIN}", lambda f: f + corner + 1),
        )
        for sentence, edge in edges:
            yield sentence, lambda f, edge=edge: begin(f, edge(f)), end, BLOCK_N
        yield "the loop starts at key 0; every tile before the window is masked completely", lambda f: 0, end, BLOCK_N
        in_rows = "its start is a multiple of BLOCK_M; key tiles start at multiples of BLOCK_N"
        yield in_rows, lambda f: max(f + corner - window + 1, 0) // BLOCK_M * BLOCK_M, end, BLOCK_N
        both = f"its start and its end {FORGOTTEN}".replace("omits", "omit")
        yield both, lambda f: begin(f, f - window + 1), lambda f: min(f + BLOCK_M, Lk), BLOCK_N


def _loads(walk: range, BLOCK_N: int, Lk: int, masked_at: int) -> np.ndarray:
    loads = np.zeros(Lk, int)
    for start in walk:
        loads[max(start, 0) : min(start + BLOCK_N, masked_at)] += 1
    return loads
