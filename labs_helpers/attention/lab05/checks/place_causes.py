"""What numbers in the wrong place give: rows of another head, a tile or a column turned, outputs exchanged."""

from itertools import chain, combinations

import torch

from labs_helpers.attention.lab05.checks.backward_pass import BackwardPass


def place_causes(e: BackwardPass, name: str):
    """Yields (sentence, the pass that it leads to)."""
    if name != "dq":
        yield "dK and dV are exchanged, in the stores or in what is returned", e.but(dk=e.dv, dv=e.dk)
    yield from turned(e, name)
    queries, keys = (("q", "do", "lse"), ("k",)) if name == "dv" else (("q", "do", "lse", "delta"), ("k", "v"))
    yield from rows_of_another_head(e, queries, "Lq", "Lk")
    yield from rows_of_another_head(e, keys, "Lk", "Lq")


def turned(e: BackwardPass, name: str):
    """P, dS, lse or delta read across the diagonal of a tile, which a square tile allows."""
    query = e.first_query + torch.arange(e.Lk) - e.first_key
    key = e.first_key + torch.arange(e.Lq)[:, None] - e.first_query
    if e.BLOCK_M != e.BLOCK_N or query.max() >= e.Lq or key.max() >= e.Lk:
        return
    lse, delta = e.lse[..., query, 0], e.delta[..., query, 0]
    yield "a tile has one lse a query, so it is a column: lse[:, None], not [None, :]", e.but(lse=lse)
    if name == "dv":
        yield "P is not transposed: dV = Pᵀ·dO, a row of it for each key", e.but(p=e.p[..., query, key])
        return
    text = "dS is transposed: dQ = scale · dS·K" if name == "dq" else "dS is not transposed: dK = scale · dSᵀ·Q"
    yield text, e.but(ds=e.ds[..., query, key])
    yield "a tile has one delta a query, so it is a column: delta[:, None], not [None, :]", e.but(delta=delta)
    both = "a tile has one lse and one delta a query, so both are columns, [:, None], not [None, :]"
    yield both, e.but(lse=lse, delta=delta)


def rows_of_another_head(e: BackwardPass, operands, own: str, other: str):
    """Some of the `operands`, `own` ('Lq', …) rows a head, read as if a head had `other` rows, or none."""
    B, H, L = *e.q.shape[:2], getattr(e, own)
    for step, place in ((getattr(e, other), f"head * {other}"), (0, "0")):
        at = torch.arange(B * H)[:, None] * step + torch.arange(L)
        if at.max() >= B * H * L:  # a stray access, which is found without a cause
            continue
        for chosen in chain(*(combinations(operands, count + 1) for count in range(len(operands)))):
            moved = {x: getattr(e, x).flatten(0, 2)[at].unflatten(0, (B, H)) for x in chosen}
            listed = " and ".join(filter(None, (", ".join(chosen[:-1]), chosen[-1])))
            yield f"a head's rows of {listed} start at head * {own}, not at {place}", e.but(**moved)
