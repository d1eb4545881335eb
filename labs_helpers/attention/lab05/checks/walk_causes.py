"""What a mask that is off, a walk that begins or ends in the wrong place, or a NaN from past the end makes of a
gradient."""

from __future__ import annotations

import math

import torch

from labs_helpers.attention.lab05.checks.exact import Exact

RULE = "query i sees the keys j ≤ i + Lk − Lq"


def walk_suspects(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int, bare=()) -> dict[str, torch.Tensor]:
    """text of a cause → the value of `name` ('dq', 'dk' or 'dv') that it leads to. Blocks: of the launch.
    bare: what the kernel loads without other=0.0."""
    causal = {**_of_the_corner(e, name, BLOCK_M, BLOCK_N), **_of_the_diagonal(e, name, BLOCK_M, BLOCK_N)}
    return {
        **(causal if e.causal else {}),
        **_nan_of_blind_queries(e, name, BLOCK_M, BLOCK_N),
        **_nan_past_the_end(e, name, BLOCK_M, BLOCK_N, bare),
        **_of_lost_tiles(e, name, BLOCK_M, BLOCK_N),
    }


def _places(e: Exact) -> tuple[torch.Tensor, torch.Tensor, int]:
    """The queries as a column, the keys as a row, Lk − Lq."""
    Lq, Lk = e.seen.shape
    return torch.arange(Lq)[:, None], torch.arange(Lk)[None, :], Lk - Lq


def _under(e: Exact, name: str, masks: dict) -> dict:
    """The gradient with P only where the mask of each text is True."""
    return {text: e.gradient(name, e.p_of(e.s, mask)) for text, mask in masks.items()}


def _of_the_corner(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int) -> dict:
    """Lk − Lq forgotten or turned round where the walk ends (dQ) or begins (dK, dV), or in the mask."""
    rows, columns, corner = _places(e)
    row_tile, column_tile = rows // BLOCK_M * BLOCK_M, columns // BLOCK_N * BLOCK_N

    def walked(offset):
        """The scores that are computed when `offset` stands for Lk − Lq."""
        if name == "dq":
            return column_tile < row_tile + BLOCK_M + offset
        return row_tile >= (column_tile - offset).clamp(min=0) // BLOCK_M * BLOCK_M

    place = (
        "the loop's end forgets Lk − Lq: the tile's last query sees the keys up to its own place + Lk − Lq"
        if name == "dq"
        else "the loop's start forgets Lk − Lq: the first query that sees key j is query j − (Lk − Lq)"
    )
    edge = "ends" if name == "dq" else "begins"
    turned = f"the sign of Lk − Lq is turned: {RULE}"
    return _under(
        e,
        name,
        {
            place: e.seen & walked(0),
            turned: e.seen_to(-corner) & walked(corner),
            f"{turned}, where the walk {edge}": e.seen & walked(-corner),
            f"{turned}, in the mask and where the walk {edge}": e.seen_to(-corner) & walked(-corner),
        },
    )


def _of_the_diagonal(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int) -> dict:
    rows, columns, corner = _places(e)
    first_row, first_column = rows // BLOCK_M * BLOCK_M, columns // BLOCK_N * BLOCK_N
    computed = first_column <= first_row + BLOCK_M - 1 + corner
    turned = f"the causal mask is turned round: {RULE}"
    return _under(
        e,
        name,
        {
            "the diagonal is off by one: query i does see key i + Lk − Lq": e.seen_to(corner - 1),
            "the diagonal is off by one: query i does not see key i + Lk − Lq + 1": e.seen_to(corner + 1) & computed,
            "the causal mask is missing when P is computed again": torch.ones_like(e.seen),
            "the causal mask is missing on the diagonal's tiles": computed,
            f"the diagonal starts from the top left corner: {RULE}": e.seen_to(0),
            turned: columns >= rows + corner,
            f"{turned}, in the tiles that are computed": (columns >= rows + corner) & computed,
            f"{turned}, and no others": ~e.seen,
            f"{turned}, and no others, in the tiles that are computed": ~e.seen & computed,
            "the tiles on the diagonal are skipped; a part of them is seen": e.seen
            & (first_column + BLOCK_N - 1 <= first_row + corner),
            "the loop ends before the diagonal: the tile's last query sees more keys than its first": e.seen
            & (columns < first_row + corner),
        },
    )


def _nan_of_blind_queries(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int) -> dict:
    rows, columns, corner = _places(e)
    blind = e.lse.isinf()
    if not bool(blind.any()):
        return {}
    everywhere, in_part = getattr(e, name).clone(), getattr(e, name).clone()
    if name == "dq":
        everywhere[blind] = math.nan
        last = rows[:, 0] // BLOCK_M * BLOCK_M + BLOCK_M - 1  # a tile whose last query sees no key is not computed
        in_part[:, :, (last + corner >= 0) & blind[0, 0]] = math.nan
    else:
        everywhere[...] = math.nan
        first_query = columns[0] // BLOCK_N * BLOCK_N - corner  # key tiles whose first query tile holds a blind query
        in_part[:, :, first_query.clamp(min=0) // BLOCK_M * BLOCK_M < -corner] = math.nan
    text = "a query that sees no key has lse = −inf, and exp(−inf + inf) is NaN: set P itself to 0 (tl.where)"
    return {text: in_part, text + ".": everywhere}


def _nan_past_the_end(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int, bare) -> dict:
    """NaN everywhere: by a load without other=0.0, or by a P that is not finite and not set to 0."""
    Lq, Lk = e.seen.shape
    if not (Lk % BLOCK_N if name == "dq" else Lq % BLOCK_M):
        return {}
    texts = []
    # Of the program's own rows those past the end are not stored; a NaN in lse goes no further than a P set to 0.
    harmless = ("q", "do", "delta", "lse") if name == "dq" else ("k", "v", "lse")
    if loads := [x for x in bare if x not in harmless]:
        loads = f"the load of {loads[0]}" if len(loads) == 1 else f"the loads of {', '.join(loads)}"
        texts.append(f"past the end P is 0, but 0 · NaN is NaN: give {loads} other=0.0")
    if name != "dq":
        texts.append("queries past the end are not masked: set their P to 0")
    elif bool((e.lse[e.lse.isfinite()] < -88).any()):  # exp(88) is the last that float32 holds
        texts.append(
            "keys past the end are not masked: k is 0 there, so P is exp(−lse), here infinite; set it to 0 "
            "(tl.where, for ∞ · 0 is NaN)"
        )
    return dict.fromkeys(texts, torch.full_like(getattr(e, name), math.nan))


def _of_lost_tiles(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int) -> dict:
    """The partial tile at the end skipped, or accumulators that keep one tile alone."""
    (Lq, Lk), (rows, columns, corner) = e.seen.shape, _places(e)
    masks = {}
    if Lk % BLOCK_N:
        masks["the last, partial tile of keys is skipped"] = e.seen & (columns < Lk // BLOCK_N * BLOCK_N)
    if Lq % BLOCK_M:
        masks["the last, partial tile of queries is skipped"] = e.seen & (rows < Lq // BLOCK_M * BLOCK_M)
    if name == "dq":
        ends = (rows // BLOCK_M * BLOCK_M + BLOCK_M + corner).clamp(0, Lk) if e.causal else torch.full_like(rows, Lk)
        only = columns >= (ends - 1).clamp(min=0) // BLOCK_N * BLOCK_N
        masks["only the last tile of keys is left: dQ has to be added up"] = e.seen & only
    else:
        only = rows >= (Lq - 1) // BLOCK_M * BLOCK_M
        masks[f"only the last tile of queries is left: {name[0]}{name[1].upper()} has to be added up"] = e.seen & only
    return _under(e, name, masks)
