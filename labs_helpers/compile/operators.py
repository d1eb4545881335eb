"""What an operator of PyTorch needs beside its registration: when a call has to take it, and autocast."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

PLAIN = {Tensor, Parameter}
AUTOCAST = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}  # device → dispatch key


def seen_by_torch(*operands: Any) -> bool:
    """Whether a call on these tensors has to be an operator, because somebody looks at operators and not only at their
    results. Any other call launches its kernels directly, which saves 10 to 40 µs of host time. So does, outside of
    torch.compile, one on what is no tensor: an operator's schema would refuse it before the check that names it.

    Somebody looks: torch.compile and torch.export, which set is_compiling; a dispatch mode (fake tensors, make_fx,
    FlopCounterMode, selective checkpointing); a tensor of a class of its own (a fake one outside its mode, DTensor).
    Not torch.func: there a custom_op has no gradient, and forward mode takes its tangent for zero without a word,
    whereas an autograd.Function says that it is not made for it.
    """
    if torch.compiler.is_compiling():
        return True
    if not is_in_torch_dispatch_mode() and PLAIN.issuperset(map(type, operands)):
        return False
    return all(isinstance(x, Tensor) for x in operands)


def autocast(*operands: Any) -> tuple[Any, ...]:
    """Operands as autocast casts those of matmul and scaled_dot_product_attention: all but float64 to the dtype of the
    region. What is no tensor is left for the operands' check to name."""
    if not torch._C._is_any_autocast_enabled():  # a fraction of what it costs to ask for one device
        return operands
    return tuple(_cast(x) if isinstance(x, Tensor) else x for x in operands)


def _cast(tensor: Tensor) -> Tensor:
    device = tensor.device.type
    lower = tensor.is_floating_point() and tensor.dtype != torch.float64
    cast = lower and device in AUTOCAST and torch.is_autocast_enabled(device)
    return tensor.to(torch.get_autocast_dtype(device)) if cast else tensor


def register_autocast(operator: Any, operands: int) -> None:
    """Let a custom_op cast its first `operands` arguments as `autocast` does. `torch.library.register_autocast` casts
    to one dtype, whatever the region's."""
    for device, key in AUTOCAST.items():

        def cast_and_call(*arguments: Any, device: str = device) -> Any:
            tensors = autocast(*arguments[:operands])
            with torch.autocast(device, enabled=False):
                return operator(*tensors, *arguments[operands:])

        torch.library.impl(operator._qualname, key, cast_and_call)
