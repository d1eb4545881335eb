"""Attend through block tables with one mistake each, as answers to exercise 5 of lab 13 do."""

from __future__ import annotations

from collections.abc import Callable

import torch


def _in_order(cache: torch.Tensor, tables: torch.Tensor) -> torch.Tensor:
    return cache[tables].transpose(1, 2).flatten(2, 3)


def _beyond(places: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return places >= lengths


def attended(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    tables: torch.Tensor,
    lengths: torch.Tensor,
    *,
    gather: Callable = _in_order,
    beyond: Callable = _beyond,
    score: float = -torch.inf,
    heads: Callable = lambda x, group: x.repeat_interleave(group, 1),
    scale: Callable = lambda D: D**0.5,
    weighted: Callable = lambda scores: scores.softmax(2),
    values_of: Callable = lambda v, k: v,
) -> torch.Tensor:
    """Return the right attention; other settings than the defaults make mistakes."""
    group = q.shape[1] // k.shape[1]
    keys, values = (heads(gather(cache, tables), group) for cache in (k, values_of(v, k)))
    scores = torch.einsum("bhd,bhld->bhl", q, keys) / scale(q.shape[2])
    wrong = beyond(torch.arange(keys.shape[2]), lengths[:, None])
    return torch.einsum("bhl,bhld->bhd", weighted(scores.masked_fill(wrong[:, None], score)), values)


def _with(**settings) -> Callable:
    return lambda *given: attended(*given, **settings)


def _not_transposed(cache, tables):
    B, most = tables.shape
    _, Hkv, size, D = cache.shape
    return cache[tables].reshape(B, Hkv, most * size, D)


def _not_gathered(cache, tables):
    B, most = tables.shape
    return _in_order(cache, torch.arange(most).expand(B, most))


def _first_table(cache, tables):
    return _in_order(cache, tables[:1].expand(len(tables), -1))


def _sorted(cache, tables):
    return _in_order(cache, tables.sort(1).values)


def _everything(places, lengths):
    return torch.zeros(len(lengths), len(places)).bool()


def _whole_blocks(q, k, v, tables, lengths):
    size = k.shape[2]
    return attended(q, k, v, tables, lengths, beyond=lambda places, lengths: places >= -(-lengths // size) * size)


def _afterwards(q, k, v, tables, lengths):
    """Zero the weights beyond the length after the softmax, which then no longer add up to 1."""

    def weighted(scores):
        beyond = torch.arange(scores.shape[2]) >= lengths[:, None]
        return scores.softmax(2).masked_fill(beyond[:, None], 0.0)

    return attended(q, k, v, tables, lengths, beyond=_everything, weighted=weighted)


MISTAKES = [
    ("positions beyond the lengths get weight: leftovers and other sequences' blocks must not count",
     _with(beyond=_everything)),
    ("the rest of the last block gets weight: the mask ends at whole blocks, not at the lengths",
     _whole_blocks),
    ("one position too many counts: positions 0 to length − 1 exist",
     _with(beyond=lambda places, lengths: places > lengths)),
    ("one position too few counts: `lengths` counts the new position already",
     _with(beyond=lambda places, lengths: places >= (lengths - 1).clamp(min=1))),
    ("positions beyond the lengths have the score 0, and exp(0) is a weight; their score is −inf",
     _with(score=0.0)),
    ("the weights beyond the lengths are removed after the softmax: the rest no longer adds up to 1",
     _afterwards),
    ("all sequences use the longest length: each has its own",
     _with(beyond=lambda places, lengths: (places >= lengths.max()).expand(len(lengths), -1))),
    ("gathered blocks are (B, most, Hkv, size, D); exchange `most` and `Hkv` before you join the blocks",
     _with(gather=_not_transposed)),
    ("the blocks 0, 1, 2, … are read instead of those of the table", _with(gather=_not_gathered)),
    ("every sequence reads the blocks of the first table", _with(gather=_first_table)),
    ("the blocks are read in the order of their numbers, not in that of the table", _with(gather=_sorted)),
    ("query head h uses key and value head h % Hkv; heads of a group are neighbors: h // (H / Hkv)",
     _with(heads=lambda x, group: x.repeat(1, group, 1, 1))),
    ("all query heads use key and value head 0", _with(heads=lambda x, group: x[:, :1].expand(
        -1, x.shape[1] * group, -1, -1))),
    ("the scores are not divided by √D", _with(scale=lambda D: 1.0)),
    ("the scores are divided by D, not by √D", _with(scale=float)),
    ("the weights multiply the keys, not the values", _with(values_of=lambda v, k: k)),
    ("the softmax runs over the heads; each head's weights over the positions add up to 1",
     _with(weighted=lambda scores: scores.softmax(1).nan_to_num())),
]  # fmt: skip
