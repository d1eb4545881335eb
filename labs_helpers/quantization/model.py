"""Quantize a model's linear layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from torch import Tensor, nn

from labs_helpers.quantization.linear import QuantizedLinear
from labs_helpers.quantization.weights import GROUPS, Fp8Weight, Int4Weight, Int8Weight, QuantizedWeight

SCHEMES: dict[str, Callable[[Tensor], QuantizedWeight]] = {"int8": Int8Weight.quantize, "fp8": Fp8Weight.quantize}
SCHEMES |= {f"int4-{group}": partial(Int4Weight.quantize, group=group) for group in GROUPS}
ROUNDED = {"w8a8": "int8", "w8a8-fp8": "fp8"}  # schemes that round activations too → those of their weights
SCHEMES |= {scheme: SCHEMES[of] for scheme, of in ROUNDED.items()}


def quantize(model: nn.Module, scheme: str, keep: Iterable[str] = ("head", "lm_head", "output")) -> nn.Module:
    """Replace the linear layers of a model, in place and one at a time, and return the model.

    scheme: a key of SCHEMES. keep: last parts of the names of layers that stay. To load a saved state, quantize a model
    of the same shapes first, then call load_state_dict. Raises ValueError for an unknown scheme, and as `quantize` of
    the weight does.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme is {scheme!r}; it may be {', '.join(SCHEMES)}")
    kept = set(keep)
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear and name not in kept:
                bias = None if layer.bias is None else layer.bias.detach()
                setattr(parent, name, QuantizedLinear(SCHEMES[scheme](layer.weight.detach()), bias, scheme in ROUNDED))
    return model


def resident_bytes(model: nn.Module) -> int:
    """Return the bytes of all parameters and buffers; tensors that share memory count once."""
    tensors = [*model.parameters(), *model.buffers()]
    return sum({tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}.values())
