"""The operations of a decoding step with one launch per product, for weights in any format."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from labs_helpers.attention.kernels.cached import CachedAttention
from labs_helpers.compile.dependent_launch import can_depend
from labs_helpers.quantization.kernels.few_rows import Weight, few_rows
from labs_helpers.transformer.decode_operations import Operations
from labs_helpers.transformer.kernels.sample import SampleLaunch


def few_rows_operations(dependent: bool | None = False) -> Operations:
    """Return operations for a DecodeLoop with up to MOST_ROWS (64) sequences: five launches per layer.

    dependent: whether kernels start before the previous one ends; None: if the GPU can. On an H200 an earlier version
    of the loop took longer with it, 2.15 ms per token instead of 1.49.
    """
    early = can_depend() if dependent is None else dependent

    def product(x: Tensor, weight: Weight, **around: Any) -> Tensor:
        return few_rows(x, weight, dependent=early, **around)

    return Operations(
        lambda x, norm, weight: product(x, weight, norm=norm.weight, eps=norm.eps),
        lambda x, weight, residual: product(x, weight, residual=residual),
        lambda x, norm, gate, up: product(x, gate, norm=norm.weight, eps=norm.eps, up=up),
        lambda cache, heads: CachedAttention(cache.k[0], heads, dependent=early),
        lambda vocabulary, how: SampleLaunch(vocabulary, how, early),
    )
