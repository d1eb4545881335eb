"""A linear layer with a quantized weight."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from labs_helpers.quantization.operator import KernelWeight, quantized_product, weight_of
from labs_helpers.quantization.weights import Int4Weight, PairedInt4Weight, QuantizedWeight


class QuantizedLinear(nn.Module):
    """y = x · Wᵀ + bias for x (…, K). The weight's tensors are buffers, so that it moves and is saved with the model;
    it has no gradient. round_x: round x to 8 bits too (W8A8) where it has many rows; see `quantized_product`. Raises
    ValueError for round_x with int4. load_state_dict raises RuntimeError for a state of another format, group or K:
    shapes alone do not tell them apart, and copying would convert int8 to float8."""

    codes: Tensor
    scale: Tensor

    def __init__(self, weight: QuantizedWeight, bias: Tensor | None = None, round_x: bool = False) -> None:
        super().__init__()
        if round_x and isinstance(weight, Int4Weight | PairedInt4Weight):
            raise ValueError("x is rounded to 8 bits for int8 and float8 weights, not for int4")
        self.round_x = round_x
        for name in ("codes", "scale", "bias"):
            self.register_buffer(name, None)
        self.weight, self.bias = weight, bias

    @property
    def weight(self) -> KernelWeight:
        """The weight; int4 in the order that the kernel reads. Assign another one to replace it."""
        return weight_of(self.codes, self.scale, self.group, self.K)

    @weight.setter
    def weight(self, weight: QuantizedWeight) -> None:
        if isinstance(weight, Int4Weight):
            weight = PairedInt4Weight.of(weight)
        int4 = isinstance(weight, PairedInt4Weight)
        self.codes, self.scale = weight.packed if int4 else weight.q, weight.scale
        self.group = weight.group if int4 else 0
        self.K = weight.shape[1]

    def get_extra_state(self) -> Tensor:
        return torch.tensor([self.group, self.K])

    def set_extra_state(self, state: Tensor) -> None:
        """Do nothing: `_load_from_state_dict` loads only a state with the same group and K."""

    def _load_from_state_dict(
        self, state: dict[str, Any], prefix: str, metadata: Any, strict: bool, missing: Any, unexpected: Any,
        errors: list[str],
    ) -> None:  # fmt: skip
        codes, sizes = state.get(f"{prefix}codes"), state.get(f"{prefix}_extra_state")
        if codes is not None and sizes is not None:
            saved, mine = _format(codes, *sizes.tolist()), _format(self.codes, self.group, self.K)
            if saved != mine:
                errors.append(f"{prefix[:-1] or 'the layer'} was saved as {saved}, and the model has {mine} there")
                return
        super()._load_from_state_dict(state, prefix, metadata, strict, missing, unexpected, errors)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        y = quantized_product(rows, self.codes, self.scale, self.group, self.K, self.round_x)
        return (y if self.bias is None else y + self.bias).unflatten(0, x.shape[:-1])


def _format(codes: Tensor, group: int, K: int) -> str:
    return f"{f'int4 in groups of {group}' if group else str(codes.dtype)[6:]} with K = {K}"
