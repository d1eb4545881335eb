"""Support for PyTorch operators: when a call has to go through one, and how autocast casts its operands."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

PLAIN = {Tensor, Parameter}
AUTOCAST = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}  # device → dispatch key


def seen_by_torch(*operands: Any) -> bool:
    """Return True if a call on these tensors must be an operator, because something watches operators.

    Any other call launches its kernels directly, which saves 10 to 40 µs of host time. Outside of torch.compile, a call
    with an argument that is not a tensor also launches directly, because the operator's schema would refuse it before
    our own check names it.

    These watch operators: torch.compile and torch.export, which set is_compiling; a dispatch mode (fake tensors,
    make_fx, FlopCounterMode, selective checkpointing); a tensor subclass (a fake tensor outside its mode, DTensor).
    torch.func does not count: there, a custom_op has no gradient and forward mode silently treats its tangent as zero,
    whereas an autograd.Function reports that it does not support it.
    """
    if torch.compiler.is_compiling():
        return True
    if not is_in_torch_dispatch_mode() and PLAIN.issuperset(map(type, operands)):
        return False
    return all(isinstance(x, Tensor) for x in operands)


def autocast(*operands: Any) -> tuple[Any, ...]:
    """Cast operands as autocast casts those of matmul and scaled_dot_product_attention: all but float64, to the
    region's dtype. Arguments that are no tensors stay, for the operands' check to report."""
    if not torch._C._is_any_autocast_enabled():  # much cheaper than asking for one device
        return operands
    return tuple(_cast(x) if isinstance(x, Tensor) else x for x in operands)


def _cast(tensor: Tensor) -> Tensor:
    device = tensor.device.type
    lower = tensor.is_floating_point() and tensor.dtype != torch.float64
    cast = lower and device in AUTOCAST and torch.is_autocast_enabled(device)
    return tensor.to(torch.get_autocast_dtype(device)) if cast else tensor


def register_autocast(operator: Any, operands: int) -> None:
    """Let a custom_op cast its first `operands` arguments as `autocast` does. `torch.library.register_autocast`
    casts to one fixed dtype instead of the region's."""
    for device, key in AUTOCAST.items():

        def cast_and_call(*arguments: Any, device: str = device) -> Any:
            tensors = autocast(*arguments[:operands])
            with torch.autocast(device, enabled=False):
                return operator(*tensors, *arguments[operands:])

        torch.library.impl(operator._qualname, key, cast_and_call)
