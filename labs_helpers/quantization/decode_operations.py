"""The operations of a decoding step with one launch per product, for weights in any format."""

from __future__ import annotations

from torch import Tensor

from labs_helpers.attention.kernels.cached import CachedAttention
from labs_helpers.quantization.kernels.few_rows import Weight, few_rows
from labs_helpers.transformer.decode_operations import Operations, fused_norm
from labs_helpers.transformer.kernels.sample import SampleLaunch
from labs_helpers.transformer.model import RMSNorm

FUSED_NORM = 8  # rows up to which every program computes the norm of all rows again; more have a launch of their own


def normed(x: Tensor, norm: RMSNorm, weight: Weight, up: Weight | None = None) -> Tensor:
    """Return `few_rows` of x after its RMSNorm."""
    if x.shape[0] > FUSED_NORM:
        return few_rows(fused_norm(x, norm), weight, up=up)
    return few_rows(x, weight, norm=norm.weight, eps=norm.eps, up=up)


def few_rows_operations() -> Operations:
    """Return operations for a DecodeLoop with up to MOST_ROWS (64) sequences: five launches per layer, or seven with
    more than FUSED_NORM sequences."""
    return Operations(
        normed,
        lambda x, weight, residual: few_rows(x, weight, residual=residual),
        normed,
        lambda cache, heads: CachedAttention(cache.k[0], heads, dependent=False),
        lambda vocabulary, how: SampleLaunch(vocabulary, how, dependent=False),
    )
