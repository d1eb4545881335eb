"""The product with a quantized weight as a PyTorch operator, for torch.compile and CUDA graphs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from labs_helpers.quantization.kernels import MOST_ROWS
from labs_helpers.quantization.kernels.chips import check_float8
from labs_helpers.quantization.weights import Fp8Weight, Int8Weight, PairedInt4Weight

KernelWeight = Int8Weight | Fp8Weight | PairedInt4Weight


def weight_of(codes: Tensor, scale: Tensor, group: int, K: int) -> KernelWeight:
    """Return the weight that these tensors store; the dtype of the codes tells its format."""
    if codes.dtype == torch.int8:
        return Int8Weight(codes, scale)
    if codes.dtype == torch.float8_e4m3fn:
        return Fp8Weight(codes, scale)
    if codes.dtype != torch.uint8:
        raise TypeError(f"codes are in {codes.dtype}; int8, float8_e4m3fn, and uint8 are known")
    return PairedInt4Weight(codes, scale, group, K)


@torch.library.custom_op("tile_to_cluster::quantized_product", mutates_args=())
def quantized_product(x: Tensor, codes: Tensor, scale: Tensor, group: int, K: int, round_x: bool = False) -> Tensor:
    """Return x · Wᵀ, (M, N), for x (M, K) and a weight's tensors, as in `weight_of`. Raises ValueError as few_rows.

    round_x: with more than MOST_ROWS rows, round x to the 8 bits of the weight's codes. With fewer, reading the weight
    takes the time, so x stays as it is. Raises RuntimeError for float8 on a chip without it.
    """
    weight = weight_of(codes, scale, group, K)
    _check(x, K)
    if x.is_cuda and isinstance(weight, Fp8Weight):
        check_float8()
    # The interpreter's dot product takes the bits of bfloat16 for whole numbers.
    if 1 <= x.shape[0] <= MOST_ROWS and (x.is_cuda or x.dtype != torch.bfloat16):
        from labs_helpers.quantization.kernels.few_rows import few_rows

        return few_rows(x.contiguous(), weight)
    if round_x:
        from labs_helpers.quantization.plan import rounded_product

        return rounded_product(x.contiguous(), weight)
    if x.is_cuda:
        from labs_helpers.quantization.plan import many_rows

        return many_rows(x.contiguous(), weight)
    return F.linear(x, weight.dequantize(x.dtype))


@quantized_product.register_fake
def _fake(x: Tensor, codes: Tensor, scale: Tensor, group: int, K: int, round_x: bool = False) -> Tensor:
    _check(x, K)
    return x.new_empty(x.shape[0], codes.shape[0])


def _check(x: Tensor, K: int) -> None:
    if x.ndim != 2 or x.shape[1] != K:
        raise ValueError(f"x is {tuple(x.shape)}; it has to be (M, {K})")
