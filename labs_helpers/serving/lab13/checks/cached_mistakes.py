"""Attend with a cache with one mistake each, as answers to exercise 2 of lab 13 do."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labs_helpers.serving.lab13.drawn import rotate


def attended(
    x: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    n: int,
    rotate: Callable,
    *,
    of_q: Callable = rotate,
    of_k: Callable = rotate,
    of_v: Callable = lambda value, position: value,
    moved: int = 0,  # where the new key and value are stored, from `length` on
    stored: bool = True,
    copied: bool = False,  # key and value are stored in a copy of the cache
    used: Callable = lambda n, capacity: slice(0, n + 1),
    masked: float | None = None,  # the score of positions that do not exist
    heads: Callable = lambda x, group: x.repeat_interleave(group, 0),
    scale: Callable = lambda D: D**0.5,
    again: bool = False,  # rotate the whole cache in this step
    swapped: bool = False,
    weighted: Callable = lambda scores: scores.softmax(1),
) -> torch.Tensor:
    """Return the right attention, and store key and value; other settings than the defaults make mistakes."""
    capacity, group = k.shape[1], len(w_q) // len(w_k)
    q, key, value = of_q(w_q @ x, n), of_k(w_k @ x, n), of_v(w_v @ x, n)
    key, value = (value, key) if swapped else (key, value)
    if copied:
        k, v = k.clone(), v.clone()
    if stored:
        k[:, n + moved], v[:, n + moved] = key, value
    all_k = torch.stack([rotate(k[:, i], i) for i in range(capacity)], 1) if again else k
    keys, values = (heads(cache[:, used(n, capacity)], group) for cache in (all_k, v))
    scores = torch.einsum("hd,hld->hl", q, keys) / scale(q.shape[1])
    if masked is not None:
        scores[:, n + 1 :] = masked
    return torch.einsum("hl,hld->hd", weighted(scores), values)


def _with(**settings) -> Callable:
    return lambda *given: attended(*given, **settings)


def _unrotated(heads, position):
    return heads


def _at(offset: int) -> Callable:
    return lambda heads, position: rotate(heads, position + offset)


LATE = "the rotation is one position late: the new position's number is `length`, since they count from 0"
EARLY = "the rotation is one position early: the new position's number is `length`, since they count from 0"
ALL = "leftovers get weight: only positions 0 to `length` exist, and the rest of the cache must not count"
MISTAKES = [
    ("the query is not rotated", _with(of_q=_unrotated)),
    ("the key is not rotated before it is stored", _with(of_k=_unrotated)),
    ("neither query nor key is rotated", _with(of_q=_unrotated, of_k=_unrotated)),
    ("the value is rotated, too; only queries and keys are", _with(of_v=rotate)),
    (LATE, _with(of_q=_at(1), of_k=_at(1))),
    (LATE, _with(of_q=_at(1))),
    (LATE, _with(of_k=_at(1))),
    (EARLY, _with(of_q=_at(-1), of_k=_at(-1))),
    (EARLY, _with(of_q=_at(-1))),
    (EARLY, _with(of_k=_at(-1))),
    ("the cached keys are rotated once more; they were rotated when they were stored", _with(again=True)),
    ("the new key and value are stored one position early, over the last ones of the past", _with(moved=-1)),
    ("the new key and value are stored one position late; a gap of leftovers stays before them", _with(moved=1)),
    ("the new key and value are not stored", _with(stored=False)),
    ("the new key and value are stored in a copy of the cache; write into `k` and `v` themselves", _with(copied=True)),
    ("the new position does not attend to itself: its own key and value are left out",
     _with(used=lambda n, capacity: slice(0, n))),
    (ALL, _with(used=lambda n, capacity: slice(0, capacity))),
    ("one position too many gets weight: `length` + 1 positions exist, the new one included",
     _with(used=lambda n, capacity: slice(0, n + 2))),
    ("positions that do not exist have the score 0, and exp(0) is a weight; their score is −inf",
     _with(used=lambda n, capacity: slice(0, capacity), masked=0.0)),
    ("query head h uses key and value head h % Hkv; heads of a group are neighbors: h // (H / Hkv)",
     _with(heads=lambda x, group: x.repeat(group, 1, 1))),
    ("all query heads use key and value head 0", _with(heads=lambda x, group: x[:1].expand(len(x) * group, -1, -1))),
    ("the scores are not divided by √D", _with(scale=lambda D: 1.0)),
    ("the scores are divided by D, not by √D", _with(scale=float)),
    ("key and value are exchanged when they are stored", _with(swapped=True)),
    ("the softmax runs over the heads; each head's weights over the positions add up to 1",
     _with(weighted=lambda scores: scores.softmax(0))),
    ("the scores are used as weights, without a softmax", _with(weighted=lambda scores: scores)),
]  # fmt: skip
