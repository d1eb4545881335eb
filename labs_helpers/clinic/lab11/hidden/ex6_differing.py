"""Hidden inputs of exercise 6: replicas with single bits that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.course.verdict import one_thread
from labs_helpers.grading.hidden import normal
from labs_helpers.grading.hidden.ranks import LIMIT_S, hidden_on_ranks
from labs_helpers.practice.groups import practice_groups

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64)


@hidden_on_ranks("11/6")
def differing(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for ranks in (1, 2, 3, 4, 5):
        names = [f"layers.{i}.weight" for i in draw.permutation(20)[:10].tolist()]
        shapes = [tuple(draw.integers(0, 6, int(draw.integers(0, 3))).tolist()) for _ in names]
        whole = {
            name: (100 * normal(draw, *shape)).to(DTYPES[int(draw.integers(4))])
            for name, shape in zip(names, shapes, strict=True)
        }
        replicas = [{name: x.clone() for name, x in whole.items()} for _ in range(ranks)]
        for name in names[:4]:
            _change(draw, replicas[int(draw.integers(ranks))][name])
        yield _lists(function, replicas)


def _change(draw: np.random.Generator, x: Tensor) -> None:
    """Flip the last bit of a value, or exchange two, where there are any."""
    flat = x.view(-1)
    if len(flat) > 1 and draw.random() < 0.5:
        i, j = draw.permutation(len(flat))[:2].tolist()
        flat[[i, j]] = flat[[j, i]]
    elif len(flat):
        flat.view(torch.uint8)[0] ^= 1


def _lists(function: Callable[..., Any], replicas: list[dict[str, Tensor]]) -> Any:
    """Return each rank's list, and whether it sends little enough and leaves its parameters alone."""

    def on_rank(comm: Any) -> Any:
        group = PracticeCommunication(comm)
        mine = replicas[group.rank]
        before = {name: x.clone() for name, x in mine.items()}
        names = [str(name) for name in function(mine, group)]
        cheap = group.payload.total() <= 16 * len(mine) * group.size and group.calls.total() <= 2
        return [names, cheap, all(map(torch.equal, before.values(), mine.values()))]

    with one_thread():
        return practice_groups(on_rank, len(replicas), timeout=LIMIT_S).results
