"""Tensors one behind the other in flat memory, cut into as many equal shards as there are ranks.

The cut does not care where a tensor ends. So all shards are equally large, a collective moves the memory as it stands,
and the optimizer is given, of each tensor that reaches into this rank's shard, the piece that lies in it. That is right
for optimizers that treat each element on its own (see elementwise.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

# Elements. Tensors begin at multiples of it, and shards too: matrix products, the optimizer's vector loads and NCCL
# want addresses that are multiples of 16 bytes, in bfloat16 as in float32.
ALIGNMENT = 16


class Piece(NamedTuple):
    """The part of a tensor that lies in a rank's shard."""

    number: int  # of the tensor in the layout
    in_tensor: slice  # of its elements, flattened
    in_shard: slice


class Layout:
    """Where tensors of these shapes lie. numel: elements in all, a multiple of `ranks`; shard_numel: of one shard;
    gaps: slices between and behind the tensors, which belong to none."""

    def __init__(self, shapes: Sequence[torch.Size], ranks: int) -> None:
        self.shapes, self.ranks = list(shapes), ranks
        self.numels = [shape.numel() for shape in shapes]
        self.starts = list(accumulate((_up(n, ALIGNMENT) for n in self.numels), initial=0))
        self.numel = _up(self.starts[-1], ranks * ALIGNMENT)
        self.shard_numel = self.numel // ranks
        ends = [start + n for start, n in zip(self.starts, self.numels, strict=False)]
        begins = [*self.starts[1:-1], self.numel]
        self.gaps = [slice(end, begin) for end, begin in zip(ends, begins, strict=True) if begin > end]

    def views(self, flat: Tensor) -> list[Tensor]:
        """The tensors in `flat`, (numel,)."""
        return [
            flat[start : start + n].view(shape)
            for start, n, shape in zip(self.starts, self.numels, self.shapes, strict=False)
        ]

    def shard(self, flat: Tensor, rank: int) -> Tensor:
        """The part of `flat` that is the rank's, (shard_numel,), a view."""
        return flat[rank * self.shard_numel : (rank + 1) * self.shard_numel]

    def pieces(self, rank: int) -> list[Piece]:
        """What lies in the rank's shard, in the tensors' order: at most one piece of each. Rank 0 has the tensors
        without elements, for which an optimizer keeps states too."""
        first = rank * self.shard_numel
        found = []
        for number, (start, n) in enumerate(zip(self.starts, self.numels, strict=False)):
            begin, end = max(start, first), min(start + n, first + self.shard_numel)
            if n == 0 and rank == 0:
                found.append(Piece(number, slice(0, 0), slice(0, 0)))
            elif begin < end:
                found.append(Piece(number, slice(begin - start, end - start), slice(begin - first, end - first)))
        return found


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple
