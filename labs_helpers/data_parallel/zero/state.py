"""Checkpoints for any number of ranks, with whole weights and optimizer states as in a single process.

    state = whole_state(zero)                      # on every rank; torch.save(state, path) on one
    load_whole_state(zero, torch.load(path))       # on any number of ranks, in any stage

state["model"] equals `model.state_dict()`, in float32 if there are master weights. state["optimizer"] is the state dict
of the plain torch.optim optimizer for the same groups, and can be exchanged with it in both directions.
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
    """Return {"model": …, "optimizer": …} on the CPU, on every rank or, to save memory, only on `rank` ({} elsewhere).

    Every rank must call this. One bucket at a time is whole on the device.
    """
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
    # A tied weight has several names but only one tensor.
    tensors = zero.model.state_dict(keep_vars=True)
    model = {name: weights[t] if t in weights else t.detach().cpu().clone() for name, t in tensors.items()}
    groups = [
        {**options, "params": [number[p] for p in members]}
        for options, members in zip(zero.optimizer.state_dict()["param_groups"], zero.groups.members, strict=True)
    ]
    return {"model": model, "optimizer": {"state": dict(sorted(states.items())), "param_groups": groups}}


def _optimizer_state(zero: ShardedOptimizer, bucket: Bucket, keep: bool) -> dict[int, dict[str, Any]]:
    """Return the whole state of each parameter, by its place in the bucket."""
    owned = list(zip(bucket.owned.pieces, bucket.owned.tensors, strict=True))
    mine = {piece.number: zero.optimizer.state[tensor] for piece, tensor in owned if tensor in zero.optimizer.state}
    shapes = {piece.number: tensor.shape for piece, tensor in owned}
    # Describe entries with one number per element by dtype; others (Adam's step) are the same on all ranks.
    described = {
        place: {key: _dtype_or_value(value, shapes[place]) for key, value in state.items()}
        for place, state in mine.items()
    }
    found: dict[int, dict[str, Any]] = {}
    for of_rank in zero.group.gather_objects(
        described
    ):  # a rank without a piece of a parameter does not know its state
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
    """Return the tensors gathered at the parameters' places from all shards, on the CPU; [] if not `keep`."""
    shard = shard.to(bucket.whole.device)
    whole = shard.new_empty(bucket.layout.numel)
    bucket.group.start_gather(whole, shard).wait()
    return [view.cpu().clone() for view in bucket.layout.views(whole)] if keep else []


@torch.no_grad()
def load_whole_state(zero: ShardedOptimizer, state: Mapping[str, Any]) -> None:
    """Load a `whole_state`, or the two state dicts of a single process, {"model": …, "optimizer": …}.

    Every rank passes the whole state and takes its part. Gradients are dropped. Raise ValueError if names, shapes, or
    groups differ.
    """
    tensors, given = zero.model.state_dict(keep_vars=True), state["model"]
    if different := sorted(tensors.keys() ^ given.keys()):
        raise ValueError(f"the model and this state differ in these entries: {', '.join(different)}")
    for name, t in tensors.items():
        if t.shape != given[name].shape:
            raise ValueError(f"{name} is {tuple(t.shape)} in the model and {tuple(given[name].shape)} in this state")
    saved = state["optimizer"]
    sizes = [len(group["params"]) for group in saved["param_groups"]]
    if sizes != [len(members) for members in zero.groups.members]:
        raise ValueError(
            f"this state has groups of {sizes} parameters, but the optimizer "
            f"has {[len(m) for m in zero.groups.members]}"
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
    """Return this rank's pieces of a state for `zero.optimizer.load_state_dict`.

    They are numbered as in torch.optim, consecutively over all groups.
    """
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
    """Return a copy of the part, so that the optimizer does not change the caller's checkpoint."""
    if not isinstance(value, Tensor):
        return value
    return (value.flatten()[elements] if value.shape == shape else value).clone()
