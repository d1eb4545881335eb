"""Linear layers and an embedding of which each rank holds a part. group: a Communication of p ranks.

A layer's `splits` says along which dimension each parameter is cut; what is not in it is whole on every rank.
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


class ColumnParallelLinear(nn.Linear):
    """x (…, in), whole on every rank → my part of x·Wᵀ + b (…, out / p). Weight and bias: my out / p rows.

    Its input is to come through `copy_to` (or `gather_to`), whose backward pass sums the gradient. Layers that share an
    input (q, k and v) share one such operator, hence one all-reduce; copies=True for a layer that has none before it.
    """

    splits: ClassVar[dict[str, int]] = {"weight": 0, "bias": 0}

    def __init__(
        self, in_dim: int, out_dim: int, group: Communication, bias: bool = True, copies: bool = False
    ) -> None:
        check_divides("out_dim", out_dim, "a group of", group.size)
        super().__init__(in_dim, out_dim // group.size, bias)
        self.group, self.copies = group, copies

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(copy_to(x, self.group) if self.copies else x)


class RowParallelLinear(nn.Linear):
    """My part of x (…, in / p) → x·Wᵀ + b (…, out), whole on every rank. Weight: my in / p columns; bias: all of it.

    The ranks' products are summed, and then the bias is added: once, and not once per rank. sequence_parallel: x is
    (batch, length, in / p), and each rank gets its part of the length, (batch, length / p, out).
    """

    splits: ClassVar[dict[str, int]] = {"weight": 1}

    def __init__(
        self, in_dim: int, out_dim: int, group: Communication, bias: bool = True, sequence_parallel: bool = False
    ) -> None:
        check_divides("in_dim", in_dim, "a group of", group.size)
        super().__init__(in_dim // group.size, out_dim, bias)
        self.group, self.sequence_parallel = group, sequence_parallel

    def forward(self, x: Tensor) -> Tensor:
        partial = F.linear(x, self.weight)
        if self.sequence_parallel:
            whole = scatter_from(partial, self.group, SEQUENCE)
        else:
            whole = reduce_from(partial, self.group, in_place=True)
        return whole if self.bias is None else whole + self.bias


class GatheredLinear(nn.Linear):
    """The naive scheme's: my part of x (…, in / p) → x·Wᵀ + b (…, out), whole on every rank.

    Weight and bias: my out / p rows. x is gathered, multiplied, and the results are gathered (see naive.py).
    """

    splits: ClassVar[dict[str, int]] = {"weight": 0, "bias": 0}

    def __init__(self, in_dim: int, out_dim: int, group: Communication, bias: bool = True) -> None:
        check_divides("in_dim", in_dim, "a group of", group.size)
        check_divides("out_dim", out_dim, "a group of", group.size)
        super().__init__(in_dim, out_dim // group.size, bias)
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        return gather_whole(super().forward(gather_to(x, self.group, -1)), self.group, -1)


class VocabularyParallelEmbedding(nn.Module):
    """tokens (B, L), the same on every rank → (B, L, width), whole on every rank. Weight: my V / p rows.

    A token of another rank's rows gives 0 here, and the sum over the ranks has exactly one row per token.
    sequence_parallel: each rank gets its part of the length, (B, L / p, width). IndexError for tokens that are not in
    the vocabulary, on CPUs (a GPU would have to wait for the answer).
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
    """(row of this rank's part, whether it is another rank's; row 0 stands for those), both of tokens' shape."""
    row = tokens - rank * rows
    elsewhere = (row < 0) | (row >= rows)
    return row.masked_fill(elsewhere, 0), elsewhere


def check_tokens(tokens: Tensor, vocabulary: int) -> None:
    """Raises IndexError for a token outside the vocabulary, which no rank would know; on CPUs."""
    if tokens.device.type == "cpu" and tokens.numel() and not 0 <= tokens.min() <= tokens.max() < vocabulary:
        raise IndexError(f"tokens go from {tokens.min()} to {tokens.max()}, the vocabulary from 0 to {vocabulary - 1}")
