"""Values from the wrong place: rows of another head, a transposed tile or column, swapped outputs."""

from itertools import chain, combinations

import torch

from labs_helpers.attention.lab05.checks.backward_pass import BackwardPass


def place_causes(e: BackwardPass, name: str):
    """Yield (sentence, the wrong pass)."""
    if name != "dq":
        yield "dK and dV are swapped, in the stores or in the return statement", e.but(dk=e.dv, dv=e.dk)
    yield from turned(e, name)
    queries, keys = (("q", "do", "lse"), ("k",)) if name == "dv" else (("q", "do", "lse", "delta"), ("k", "v"))
    yield from rows_of_another_head(e, queries, "Lq", "Lk")
    yield from rows_of_another_head(e, keys, "Lk", "Lq")


def turned(e: BackwardPass, name: str):
    """Yield transposed P, dS, lse or delta, which is possible without an error only in a square tile."""
    query = e.first_query + torch.arange(e.Lk) - e.first_key
    key = e.first_key + torch.arange(e.Lq)[:, None] - e.first_query
    if e.BLOCK_M != e.BLOCK_N or query.max() >= e.Lq or key.max() >= e.Lk:
        return
    lse, delta = e.lse[..., query, 0], e.delta[..., query, 0]
    yield "a tile has one lse per query, so lse is a column: lse[:, None], not [None, :]", e.but(lse=lse)
    if name == "dv":
        yield "P is not transposed: dV = Pᵀ·dO has one row per key", e.but(p=e.p[..., query, key])
        return
    text = "dS is transposed: dQ = scale · dS·K" if name == "dq" else "dS is not transposed: dK = scale · dSᵀ·Q"
    yield text, e.but(ds=e.ds[..., query, key])
    yield "a tile has one delta per query, so delta is a column: delta[:, None], not [None, :]", e.but(delta=delta)
    both = "a tile has one lse and one delta per query, so both are columns: [:, None], not [None, :]"
    yield both, e.but(lse=lse, delta=delta)


def rows_of_another_head(e: BackwardPass, operands, own: str, other: str):
    """Yield operands with `own` rows per head ('Lq' or 'Lk') that are read as if a head had `other` rows, or none."""
    B, H, L = *e.q.shape[:2], getattr(e, own)
    for step, place in ((getattr(e, other), f"head * {other}"), (0, "0")):
        at = torch.arange(B * H)[:, None] * step + torch.arange(L)
        if at.max() >= B * H * L:  # the check finds a stray access without a cause
            continue
        for chosen in chain(*(combinations(operands, count + 1) for count in range(len(operands)))):
            moved = {x: getattr(e, x).flatten(0, 2)[at].unflatten(0, (B, H)) for x in chosen}
            listed = " and ".join(filter(None, (", ".join(chosen[:-1]), chosen[-1])))
            yield f"a head's rows of {listed} start at head * {own}, not at {place}", e.but(**moved)
