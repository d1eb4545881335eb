"""What numbers in the wrong place give: rows of another array, a column used as a row, outputs exchanged."""

from __future__ import annotations

from itertools import combinations

import torch

from labs_helpers.attention.lab05.checks.exact import Exact


def misplaced(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int) -> dict[str, torch.Tensor]:
    """text of a cause → the value of `name` ('dq', 'dk' or 'dv') that it leads to. Blocks: of the launch."""
    return {**_exchanged(e, name), **_of_turned_columns(e, name, BLOCK_M, BLOCK_N), **_of_other_heads(e, name)}


def _from(e: Exact, name: str, q=None, k=None, v=None, do=None, lse=None, delta=None):
    """dq, dk or dv with some operands replaced; lse and delta (B, H, Lq) or one number a score."""
    q, k, v, do = (own if x is None else x for x, own in ((q, e.q), (k, e.k), (v, e.v), (do, e.do)))
    lse, delta = (
        own[..., None] if x is None else x if x.ndim == 4 else x[..., None]
        for x, own in ((lse, e.lse), (delta, e.delta))
    )
    s, slope = e.scale * q @ k.mT, 1.0
    if e.cap is not None:
        bent = torch.tanh(s / e.cap)
        s, slope = e.cap * bent, 1 - bent**2
    p = torch.exp(s - lse).masked_fill(~e.seen, 0.0)
    if name == "dv":
        return p.mT @ do
    ds = p * (do @ v.mT - delta) * slope
    return e.scale * (ds @ k if name == "dq" else ds.mT @ q)


def _exchanged(e: Exact, name: str) -> dict:
    if name == "dq":
        return {}
    return {"dK and dV are stored into each other": e.dk if name == "dv" else e.dv}


def _of_turned_columns(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int) -> dict:
    """lse or delta laid along the keys of a tile, which a square tile allows."""
    Lq, Lk = e.seen.shape
    if BLOCK_M != BLOCK_N:
        return {}
    at = torch.arange(Lq)[:, None] // BLOCK_M * BLOCK_M + torch.arange(Lk)[None, :] % BLOCK_N

    def turned(x):
        return torch.nn.functional.pad(x, (0, -Lq % BLOCK_M))[..., at]

    lse, delta = turned(e.lse), turned(e.delta)
    text = "a tile has one {} a query, so it is a column: {}[:, None], not [None, :]"
    return {
        text.format("lse", "lse"): _from(e, name, lse=lse),
        text.format("delta", "delta"): _from(e, name, delta=delta),
        "a tile has one lse and one delta a query, so both are columns, [:, None], not [None, :]": _from(
            e, name, lse=lse, delta=delta
        ),
    }


def _of_other_heads(e: Exact, name: str) -> dict:
    """Rows of a head that start where another array's do, or, for every head, at 0."""
    (B, H, Lq), Lk = e.lse.shape, e.k.shape[2]
    texts = {}
    for keys, L, own, other in ((("q", "do", "lse", "delta"), Lq, "Lq", "Lk"), (("k", "v"), Lk, "Lk", "Lq")):
        for step, place in ((Lq + Lk - L, f"head * {other}"), (0, "0")):
            at = torch.arange(B * H)[:, None] * step + torch.arange(L)
            if at.max() >= B * H * L:  # a stray access, which tells itself
                continue
            moved = {key: getattr(e, key).flatten(0, 2)[at].unflatten(0, (B, H)) for key in keys}
            for chosen in (chosen for count in range(len(keys)) for chosen in combinations(keys, count + 1)):
                texts[f"a head's rows of {_listed(chosen)} start at head * {own}, not at {place}"] = _from(
                    e, name, **{key: moved[key] for key in chosen}
                )
    return texts


def _listed(names) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
