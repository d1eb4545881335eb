"""Tensors stored one after another in flat memory, and cut into equal shards, one per rank.

The cuts ignore tensor boundaries. All shards are therefore equally large, a collective moves the memory without a copy,
and the optimizer gets a piece of every tensor that overlaps this rank's shard. This is correct for optimizers that
update each element independently (see elementwise.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

# Elements. Tensors and shards begin at multiples of it, because matrix products, the optimizer's vector loads, and NCCL
# need addresses that are multiples of 16 bytes, in bfloat16 as in float32.
ALIGNMENT = 16


class Piece(NamedTuple):
    """The part of a tensor that belongs to a rank's shard."""

    number: int  # of the tensor in the layout
    in_tensor: slice  # of its flattened elements
    in_shard: slice


class Layout:
    """Positions of tensors with these shapes in flat memory.

    numel: total elements, a multiple of `ranks`. shard_numel: elements per shard. gaps: slices between and after the
    tensors, which belong to none.
    """

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
        """Return the tensors as views of `flat`, (numel,)."""
        return [
            flat[start : start + n].view(shape)
            for start, n, shape in zip(self.starts, self.numels, self.shapes, strict=False)
        ]

    def shard(self, flat: Tensor, rank: int) -> Tensor:
        """Return the rank's part of `flat`, (shard_numel,), as a view."""
        return flat[rank * self.shard_numel : (rank + 1) * self.shard_numel]

    def pieces(self, rank: int) -> list[Piece]:
        """Return the pieces in the rank's shard, in the tensors' order, at most one per tensor.

        Rank 0 owns the tensors without elements, because an optimizer keeps states for them too.
        """
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
