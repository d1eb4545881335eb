"""The operations of a decoding step, as a table of functions: plain PyTorch for any device, or kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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


PLAIN = Operations(norm_product, product_add, norm_swiglu, lambda cache, heads: attend_plain, plain_sampler)
# PyTorch's kernels, as few as possible, with the course's attention and sampling.
KERNELS = Operations(fused_norm_product, fused_product_add, fused_norm_swiglu, kernel_attention, kernel_sampler)


def operations_for(cache: KVCache) -> Operations:
    """Return KERNELS for a cache of 16-bit floats on a GPU, else PLAIN."""
    here, dtype = this_machine(), cache.k.dtype
    half = dtype == torch.float16 or (dtype == torch.bfloat16 and here.supports_bfloat16)
    return KERNELS if cache.k.is_cuda and half and not here.interpreted else PLAIN
