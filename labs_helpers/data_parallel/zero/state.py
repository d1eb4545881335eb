"""Checkpoints for any number of ranks: weights and optimizer's states whole, as one process has them.

    state = whole_state(zero)                      # every rank; torch.save(state, path) on one
    load_whole_state(zero, torch.load(path))       # on as many ranks as there are now, in any stage

state["model"] is what `model.state_dict()` is, in float32 where there are master weights. state["optimizer"] is what
the plain torch.optim optimizer has for the same groups: it takes it by `load_state_dict`, and what it saves is taken
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from labs_helpers.data_parallel.zero.bucket import Bucket
from labs_helpers.data_parallel.zero.optimizer import ShardedOptimizer


@torch.no_grad()
def whole_state(zero: ShardedOptimizer, rank: int | None = None) -> dict[str, Any]:
    """{"model": …, "optimizer": …} on the CPU, on every rank or, to save memory, on `rank` alone: {} on the others.
    Called by every rank. One bucket at a time is whole on the device."""
    keep = rank is None or rank == zero.group.rank
    zero.settle()
    number = {p: i for i, p in enumerate(zero.groups.all)}
    weights: dict[Tensor, Tensor] = {}
    states: dict[int, dict[str, Any]] = {}
    for bucket in zero.buckets:
        values = _gather(bucket, bucket.owned.home, keep)
        weights |= dict(zip(bucket.parameters, values, strict=False))
        for place, entries in _optimizer_state(zero, bucket, keep).items():
            states[number[bucket.parameters[place]]] = entries
    if not keep:
        return {}
    # A tied weight has several names, and one tensor.
    tensors = zero.model.state_dict(keep_vars=True)
    model = {name: weights[t] if t in weights else t.detach().cpu().clone() for name, t in tensors.items()}
    groups = [
        {**options, "params": [number[p] for p in members]}
        for options, members in zip(zero.optimizer.state_dict()["param_groups"], zero.groups.members, strict=True)
    ]
    return {"model": model, "optimizer": {"state": dict(sorted(states.items())), "param_groups": groups}}


def _optimizer_state(zero: ShardedOptimizer, bucket: Bucket, keep: bool) -> dict[int, dict[str, Any]]:
    """By the parameter's place in the bucket, its whole state."""
    owned = list(zip(bucket.owned.pieces, bucket.owned.tensors, strict=True))
    mine = {piece.number: zero.optimizer.state[tensor] for piece, tensor in owned if tensor in zero.optimizer.state}
    shapes = {piece.number: tensor.shape for piece, tensor in owned}
    # What has a number for each element is described by its dtype; all else (Adam's step) is the same on all ranks.
    described = {
        place: {key: _dtype_or_value(value, shapes[place]) for key, value in state.items()}
        for place, state in mine.items()
    }
    found: dict[int, dict[str, Any]] = {}
    for of_rank in zero.group.gather_objects(described):  # who owns nothing of a parameter does not know its state
        for place, entries in of_rank.items():
            found.setdefault(place, {}).update(entries)
    kinds = {(key, v) for entries in found.values() for key, v in entries.items() if isinstance(v, torch.dtype)}
    for key, dtype in sorted(kinds, key=str):
        shard = torch.zeros(bucket.layout.shard_numel, dtype=dtype, device=bucket.owned.home.device)
        for piece, _ in owned:
            if described.get(piece.number, {}).get(key) is dtype:
                shard[piece.in_shard] = mine[piece.number][key]
        for place, whole in enumerate(_gather(bucket, shard, keep)):
            if found.get(place, {}).get(key) is dtype:
                found[place][key] = whole
    return found if keep else {}


def _dtype_or_value(value: Any, shape: torch.Size) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.dtype if value.shape == shape else value.detach().cpu().clone()


def _gather(bucket: Bucket, shard: Tensor, keep: bool) -> list[Tensor]:
    """What lies at the parameters' places in all ranks' shards, on the CPU; [] if not `keep`."""
    shard = shard.to(bucket.whole.device)
    whole = shard.new_empty(bucket.layout.numel)
    bucket.group.start_gather(whole, shard).wait()
    return [view.cpu().clone() for view in bucket.layout.views(whole)] if keep else []


@torch.no_grad()
def load_whole_state(zero: ShardedOptimizer, state: Mapping[str, Any]) -> None:
    """Goes on from `whole_state`, or from {"model": model.state_dict(), "optimizer": optimizer.state_dict()} of a
    single process. Every rank has the whole state and takes its part. Gradients are dropped.

    ValueError: names or shapes of another model, other groups."""
    tensors, given = zero.model.state_dict(keep_vars=True), state["model"]
    if different := sorted(tensors.keys() ^ given.keys()):
        raise ValueError(f"the model and this state differ in {', '.join(different)}")
    for name, t in tensors.items():
        if t.shape != given[name].shape:
            raise ValueError(f"{name} is {tuple(t.shape)} in the model and {tuple(given[name].shape)} in this state")
    saved = state["optimizer"]
    sizes = [len(group["params"]) for group in saved["param_groups"]]
    if sizes != [len(members) for members in zero.groups.members]:
        raise ValueError(
            f"this state has groups of {sizes} parameters, and not of {[len(m) for m in zero.groups.members]}"
        )

    zero.settle()
    zero.zero_grad()
    weights = {t: given[name] for name, t in tensors.items()}
    for t in weights.keys() - {p for bucket in zero.buckets for p in bucket.parameters}:
        t.copy_(weights[t])
    for bucket in zero.buckets:
        bucket.load([weights[p] for p in bucket.parameters])
    zero.optimizer.load_state_dict(_packed(zero, saved))


def _packed(zero: ShardedOptimizer, saved: Mapping[str, Any]) -> dict[str, Any]:
    """What `zero.optimizer.load_state_dict` takes: this rank's pieces of the whole, numbered as torch.optim does it,
    one after the other over all groups."""
    numbers = [i for group in saved["param_groups"] for i in group["params"]]
    whole = dict(zip(zero.groups.all, numbers, strict=True))
    mine: dict[Tensor, dict[str, Any]] = {}
    for bucket in zero.buckets:
        for piece, tensor in zip(bucket.owned.pieces, bucket.owned.tensors, strict=True):
            p = bucket.parameters[piece.number]
            entries = saved["state"].get(whole.get(p), {})
            mine[tensor] = {key: _part(v, p.shape, piece.in_tensor) for key, v in entries.items()}
    tensors = [tensor for group in zero.optimizer.param_groups for tensor in group["params"]]
    number = {tensor: i for i, tensor in enumerate(tensors)}
    groups = [
        {**options, "params": [number[tensor] for tensor in group["params"]]}
        for group, options in zip(zero.optimizer.param_groups, saved["param_groups"], strict=True)
    ]
    return {"state": {number[t]: mine[t] for t in tensors if mine[t]}, "param_groups": groups}


def _part(value: Any, shape: torch.Size, elements: slice) -> Any:
    """Never the tensor itself: the optimizer would work on in the caller's checkpoint."""
    if not isinstance(value, Tensor):
        return value
    return (value.flatten()[elements] if value.shape == shape else value).clone()
