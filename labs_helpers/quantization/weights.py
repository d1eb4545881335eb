"""Quantized weights of a linear layer: int8, int4 in groups, and fp8, each rounded to nearest.

N: outputs; K: inputs. The scales are float32, since a rounded scale would move every weight of its row; int4's are
16-bit floats, because a group of 32 to 128 weights shares one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from labs_helpers.quantization.packing import pack_int4, unpack_int4

GROUPS = (32, 64, 128)
INT8_MAX, INT4_MAX, FP8_MAX = 127, 15, 448.0
FP8 = torch.float8_e4m3fn


def _scale(largest: Tensor, codes: float) -> Tensor:
    """Return largest / codes, or 1 where all values are 0."""
    return torch.where(largest > 0, largest, codes) / codes


def _check(w: Tensor) -> Tensor:
    if w.ndim != 2 or not w.is_floating_point():
        raise ValueError(f"a weight is {tuple(w.shape)} in {w.dtype}; it has to be a matrix (N, K) of floats")
    if not torch.isfinite(w).all():
        raise ValueError("a weight has values that are not finite")
    return w.float()


@dataclass(frozen=True)
class _ScaledRows:
    """w ≈ scale · q, with one scale per output channel. q: (N, K); scale: float32 (N,)."""

    q: Tensor
    scale: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.q.shape[0], self.q.shape[1]

    @property
    def nbytes(self) -> int:
        return self.q.nbytes + self.scale.nbytes

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        return (self.q.float() * self.scale[:, None]).to(dtype)


class Int8Weight(_ScaledRows):
    """w ≈ scale · q, with one scale per output channel. q: int8 (N, K), −127 to 127; scale: float32 (N,)."""

    @classmethod
    def quantize(cls, w: Tensor) -> Int8Weight:
        """Round to nearest: |w − scale · q| ≤ scale / 2. Raises ValueError unless w is a finite matrix of floats."""
        wide = _check(w)
        scale = _scale(wide.abs().amax(1), INT8_MAX)
        return cls((wide / scale[:, None]).round().to(torch.int8), scale)


class Fp8Weight(_ScaledRows):
    """w ≈ scale · q, with one scale per output channel. q: float8 e4m3 (N, K); scale: float32 (N,)."""

    @classmethod
    def quantize(cls, w: Tensor) -> Fp8Weight:
        """Round to nearest, within 2⁻⁴ of a value that is not tiny. Raises ValueError as `Int8Weight.quantize`."""
        wide = _check(w)
        scale = _scale(wide.abs().amax(1), FP8_MAX)
        return cls((wide / scale[:, None]).to(FP8), scale)


@dataclass(frozen=True)
class Int4Weight:
    """w ≈ scale · (code − zero), with a scale and a zero point per row and group of `group` columns.

    packed: uint8 (N, K/2), as `pack_int4` packs codes; scale: bfloat16 (N, K/group); zero: uint8 (N, K/group).
    """

    packed: Tensor
    scale: Tensor
    zero: Tensor
    group: int

    @classmethod
    def quantize(cls, w: Tensor, group: int = 128) -> Int4Weight:
        """Round to nearest. Each group's range includes 0, which therefore has a code of its own.

        Raises ValueError for a group other than 32, 64 or 128, a K that it does not divide, and as `Int8Weight`.
        """
        wide = _check(w)
        if group not in GROUPS:
            raise ValueError(f"group is {group}; it may be 32, 64 or 128")
        if w.shape[1] % group:
            raise ValueError(f"K is {w.shape[1]}, which is not a multiple of the group, {group}")
        parts = wide.unflatten(1, (-1, group))
        low, high = parts.amin(2).clamp(max=0), parts.amax(2).clamp(min=0)
        scale = _scale(high - low, INT4_MAX).to(torch.bfloat16)  # rounded before the codes are chosen
        wide_scale = scale.float()
        zero = (-low / wide_scale).round().clamp(0, INT4_MAX)
        codes = (parts / wide_scale[..., None]).round() + zero[..., None]
        return cls(pack_int4(codes.clamp(0, INT4_MAX).flatten(1)), scale, zero.to(torch.uint8), group)

    @property
    def shape(self) -> tuple[int, int]:
        return self.packed.shape[0], 2 * self.packed.shape[1]

    @property
    def nbytes(self) -> int:
        return self.packed.nbytes + self.scale.nbytes + self.zero.nbytes

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        codes = unpack_int4(self.packed).float().unflatten(1, (-1, self.group))
        return ((codes - self.zero.float()[..., None]) * self.scale.float()[..., None]).flatten(1).to(dtype)


@dataclass(frozen=True)
class PairedInt4Weight:
    """An `Int4Weight` in the order in which a kernel reads it: two groups share their bytes.

    packed: uint8 (N, pairs · group); byte i of a pair holds code i of its first group in the lower four bits and that
    of its second group in the upper ones, so each half is a contiguous piece of K. scale: bfloat16 (2 · pairs, N, 2),
    a scale and its zero point, which a kernel reads as one word; an odd last group gets a partner with scale 0. K:
    inputs.
    """

    packed: Tensor
    scale: Tensor
    group: int
    K: int

    @classmethod
    def of(cls, weight: Int4Weight) -> PairedInt4Weight:
        """Reorder a weight: the same bytes in other places."""
        codes = unpack_int4(weight.packed).unflatten(1, (-1, weight.group))
        N, groups, group = codes.shape
        if groups % 2:
            codes = torch.cat([codes, codes.new_zeros(N, 1, group)], dim=1)
        first, second = codes[:, 0::2], codes[:, 1::2]
        scale = torch.stack([weight.scale.T, weight.zero.T.to(weight.scale.dtype)], dim=2)
        if groups % 2:
            scale = torch.cat([scale, torch.zeros_like(scale[:1])])
        return cls((first | (second << 4)).flatten(1).contiguous(), scale.contiguous(), group, groups * group)

    @property
    def shape(self) -> tuple[int, int]:
        return self.packed.shape[0], self.K

    @property
    def nbytes(self) -> int:
        return self.packed.nbytes + self.scale.nbytes

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        pairs = self.packed.unflatten(1, (-1, self.group))
        codes = torch.stack([pairs & 15, pairs >> 4], dim=2).flatten(1, 2).float()  # (N, 2 · pairs, group)
        scale, zero = self.scale.float().transpose(0, 1)[..., None].unbind(2)
        wide = (codes - zero) * scale
        return wide.flatten(1)[:, : self.K].to(dtype)


QuantizedWeight = Int8Weight | Fp8Weight | Int4Weight | PairedInt4Weight
