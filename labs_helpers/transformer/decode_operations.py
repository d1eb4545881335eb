"""The operations of a decoding step, as a table of functions: plain PyTorch for any device, or kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from labs_helpers.measure.machine import this_machine
from labs_helpers.transformer.decode_plain import Weight, attend_plain, dense, norm_product, norm_swiglu, product_add
from labs_helpers.transformer.kv_cache import KVCache
from labs_helpers.transformer.model import RMSNorm
from labs_helpers.transformer.sampling import Sampling, sample

Attend = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
Sample = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], None]


@dataclass(frozen=True)
class Operations:
    """What a step calls. To use other kernels for some of it: `dataclasses.replace(PLAIN, product_add=…)`.

    norm_product(x, norm, weight): RMSNorm(x)·Wᵀ. product_add(x, weight, residual): residual + x·Wᵀ, which may replace
    the residual. norm_swiglu(x, norm, gate, up): silu(n·Gᵀ) · n·Uᵀ with n = RMSNorm(x). attention(cache, heads) returns
    a function (qkv, cos, sin, lengths, k, v) → o as `attend_plain`. sampler(vocabulary, how) returns a function
    (logits, seed, lengths, tokens, current) as `sampling.sample`.
    """

    norm_product: Callable[[Tensor, RMSNorm, Weight], Tensor]
    product_add: Callable[[Tensor, Weight, Tensor], Tensor]
    norm_swiglu: Callable[[Tensor, RMSNorm, Weight, Weight], Tensor]
    attention: Callable[[KVCache, int], Attend]
    sampler: Callable[[int, Sampling], Sample]


def plain_sampler(vocabulary: int, how: Sampling) -> Sample:
    def append(logits: Tensor, seed: Tensor, lengths: Tensor, tokens: Tensor, current: Tensor) -> None:
        sample(logits, seed, lengths, tokens, current, how)

    return append


def kernel_attention(cache: KVCache, heads: int) -> Attend:
    """Return the attention kernel that reads only the used positions, for this cache."""
    from labs_helpers.attention.kernels.cached import CachedAttention

    return CachedAttention(cache.k[0], heads)


def kernel_sampler(vocabulary: int, how: Sampling) -> Sample:
    """Return the sampling kernel, one launch per step."""
    from labs_helpers.transformer.kernels.sample import SampleLaunch

    return SampleLaunch(vocabulary, how)


def fused_norm_product(x: Tensor, norm: RMSNorm, weight: Weight) -> Tensor:
    return F.linear(fused_norm(x, norm), dense(weight, x.dtype))


def fused_product_add(x: Tensor, weight: Weight, residual: Tensor) -> Tensor:
    return residual.addmm_(x, dense(weight, x.dtype).T)  # in place: addmm would copy the residual first


def fused_norm_swiglu(x: Tensor, norm: RMSNorm, gate: Weight, up: Weight) -> Tensor:
    x = fused_norm(x, norm)
    return F.silu(F.linear(x, dense(gate, x.dtype))).mul_(F.linear(x, dense(up, x.dtype)))


def fused_norm(x: Tensor, norm: RMSNorm) -> Tensor:
    """Compute RMSNorm in one kernel of PyTorch, which rounds once, where the model's module rounds twice."""
    return F.rms_norm(x, norm.weight.shape, norm.weight, norm.eps)


def few_rows_operations(dependent: bool | None = None) -> Operations:
    """Return KERNELS with one launch per product, for up to few_rows.MOST_ROWS sequences.

    dependent: whether kernels start before the previous one ends; by default if the GPU can.
    """
    from labs_helpers.attention.kernels.cached import CachedAttention
    from labs_helpers.transformer.kernels.few_rows import few_rows
    from labs_helpers.transformer.kernels.sample import SampleLaunch

    def product(x: Tensor, weight: Weight, **around: Any) -> Tensor:
        return few_rows(x, dense(weight, x.dtype), dependent=dependent, **around)

    return Operations(
        lambda x, norm, weight: product(x, weight, norm=norm.weight, eps=norm.eps),
        lambda x, weight, residual: product(x, weight, residual=residual),
        lambda x, norm, gate, up: product(x, gate, norm=norm.weight, eps=norm.eps, up=dense(up, x.dtype)),
        lambda cache, heads: CachedAttention(cache.k[0], heads, dependent=dependent),
        lambda vocabulary, how: SampleLaunch(vocabulary, how, dependent),
    )


PLAIN = Operations(norm_product, product_add, norm_swiglu, lambda cache, heads: attend_plain, plain_sampler)
# PyTorch's kernels, as few as possible, with the course's attention and sampling.
KERNELS = Operations(fused_norm_product, fused_product_add, fused_norm_swiglu, kernel_attention, kernel_sampler)
MOST_ROWS = 64


def operations_for(cache: KVCache) -> Operations:
    """Return the fastest operations for a cache's device, dtype and batch; PLAIN unless it is on a GPU in 16 bits."""
    here, dtype = this_machine(), cache.k.dtype
    half = dtype == torch.float16 or (dtype == torch.bfloat16 and here.supports_bfloat16)
    if not (cache.k.is_cuda and half) or here.interpreted:
        return PLAIN
    return few_rows_operations() if cache.batch <= MOST_ROWS else KERNELS
