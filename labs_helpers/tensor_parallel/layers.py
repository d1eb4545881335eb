"""Linear layers and an embedding split over the p ranks of a group (a Communication).

A layer's `splits` maps each split parameter to its dimension; every rank holds all other parameters whole.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labs_helpers.communication import Communication
from labs_helpers.tensor_parallel.grid import check_divides
from labs_helpers.tensor_parallel.operators import copy_to, gather_to, gather_whole, reduce_from, scatter_from

SEQUENCE = 1  # of (batch, length, features)


class _Linear(nn.Linear):
    def product(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x·Wᵀ + b with this rank's part of the weight; `pipeline.split_backward` replaces this method."""
        return F.linear(x, self.weight, bias)


class ColumnParallelLinear(_Linear):
    """Map x (…, in), whole on every rank, to this rank's part (…, out / p) of x·Wᵀ + b.

    Weight and bias are this rank's out / p rows of nn.Linear's parameters. Apply `copy_to` (or `gather_to`) to the
    input, because its backward pass sums the gradient; layers that share an input (q, k and v) share one operator and
    so one all-reduce. copies=True: the layer applies `copy_to` itself.
    """

    splits: ClassVar[dict[str, int]] = {"weight": 0, "bias": 0}

    def __init__(
        self, in_dim: int, out_dim: int, group: Communication, bias: bool = True, copies: bool = False
    ) -> None:
        check_divides("out_dim", out_dim, "a group of", group.size)
        super().__init__(in_dim, out_dim // group.size, bias)
        self.group, self.copies = group, copies

    def forward(self, x: Tensor) -> Tensor:
        return self.product(copy_to(x, self.group) if self.copies else x, self.bias)


class RowParallelLinear(_Linear):
    """Map this rank's part of x (…, in / p) to x·Wᵀ + b (…, out), whole on every rank.

    Weight is this rank's in / p columns; bias is whole, and added once, after the sum over the ranks.
    sequence_parallel: x is (batch, length, in / p), and each rank gets its part of the length, (batch, length / p,
    out).
    """

    splits: ClassVar[dict[str, int]] = {"weight": 1}

    def __init__(
        self, in_dim: int, out_dim: int, group: Communication, bias: bool = True, sequence_parallel: bool = False
    ) -> None:
        check_divides("in_dim", in_dim, "a group of", group.size)
        super().__init__(in_dim // group.size, out_dim, bias)
        self.group, self.sequence_parallel = group, sequence_parallel

    def forward(self, x: Tensor) -> Tensor:
        partial = self.product(x)
        if self.sequence_parallel:
            whole = scatter_from(partial, self.group, SEQUENCE)
        else:
            whole = reduce_from(partial, self.group, in_place=True)
        return whole if self.bias is None else whole + self.bias


class GatheredLinear(_Linear):
    """Map this rank's part of x (…, in / p) to x·Wᵀ + b (…, out), whole on every rank, in the naive scheme.

    Weight and bias are this rank's out / p rows. The layer gathers x, multiplies, and gathers the results (naive.py).
    """

    splits: ClassVar[dict[str, int]] = {"weight": 0, "bias": 0}

    def __init__(self, in_dim: int, out_dim: int, group: Communication, bias: bool = True) -> None:
        check_divides("in_dim", in_dim, "a group of", group.size)
        check_divides("out_dim", out_dim, "a group of", group.size)
        super().__init__(in_dim, out_dim // group.size, bias)
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        return gather_whole(self.product(gather_to(x, self.group, -1), self.bias), self.group, -1)


class VocabularyParallelEmbedding(nn.Module):
    """Map tokens (B, L), the same on every rank, to (B, L, width), whole on every rank.

    Weight is this rank's V / p rows. A token whose row is on another rank gives 0 here, so the sum over the ranks
    contains exactly one row per token. sequence_parallel: each rank gets its part of the length, (B, L / p, width).
    Raises IndexError for tokens outside the vocabulary, but only on CPUs, since the check would stall a GPU.
    """

    splits: ClassVar[dict[str, int]] = {"weight": 0}

    def __init__(self, vocabulary: int, width: int, group: Communication, sequence_parallel: bool = False) -> None:
        super().__init__()
        check_divides("vocabulary", vocabulary, "a group of", group.size)
        self.vocabulary, self.group, self.sequence_parallel = vocabulary, group, sequence_parallel
        self.weight = nn.Parameter(torch.randn(vocabulary // group.size, width))

    def forward(self, tokens: Tensor) -> Tensor:
        check_tokens(tokens, self.vocabulary)
        row, elsewhere = own_rows(tokens, len(self.weight), self.group.rank)
        mine = F.embedding(row, self.weight).masked_fill(elsewhere[..., None], 0)
        if self.sequence_parallel:
            return scatter_from(mine, self.group, SEQUENCE)
        return reduce_from(mine, self.group, in_place=True)


def own_rows(tokens: Tensor, rows: int, rank: int) -> tuple[Tensor, Tensor]:
    """Return (the row in this rank's part, whether the token is on another rank); row 0 replaces the latter."""
    row = tokens - rank * rows
    elsewhere = (row < 0) | (row >= rows)
    return row.masked_fill(elsewhere, 0), elsewhere


def check_tokens(tokens: Tensor, vocabulary: int) -> None:
    """Raise IndexError for a token outside the vocabulary; checks only on CPUs."""
    if tokens.device.type == "cpu" and not torch.equal(tokens, tokens.clamp(0, vocabulary - 1)):
        raise IndexError(
            f"tokens range from {tokens.min()} to {tokens.max()}, but the vocabulary from 0 to {vocabulary - 1}"
        )
