"""The operations of a decoding step with one launch per product, for weights in any format."""

from __future__ import annotations

from labs_helpers.attention.kernels.cached import CachedAttention
from labs_helpers.quantization.kernels.few_rows import few_rows
from labs_helpers.transformer.decode_operations import Operations
from labs_helpers.transformer.kernels.sample import SampleLaunch


def few_rows_operations() -> Operations:
    """Return operations for a DecodeLoop with up to MOST_ROWS (64) sequences: five launches per layer."""
    return Operations(
        lambda x, norm, weight: few_rows(x, weight, norm=norm.weight, eps=norm.eps),
        lambda x, weight, residual: few_rows(x, weight, residual=residual),
        lambda x, norm, gate, up: few_rows(x, gate, norm=norm.weight, eps=norm.eps, up=up),
        lambda cache, heads: CachedAttention(cache.k[0], heads, dependent=False),
        lambda vocabulary, how: SampleLaunch(vocabulary, how, dependent=False),
    )
