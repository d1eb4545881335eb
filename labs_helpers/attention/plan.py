"""Choose the kernels for an attention call, and give the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from labs_helpers.attention.kernels import decode, hopper, portable
from labs_helpers.attention.operands import check_gradient_operands, check_operands
from labs_helpers.measure.machine import this_machine

KERNELS: dict[str, Any] = {"hopper": hopper, "portable": portable, "decode": decode}
ON_HOPPER = "16-bit operands on sm_90 that its tensor memory accelerator can read"
MOST_KNOWN = 4096
_known: dict[tuple[Any, ...], Plan] = {}
Gradients = tuple[Tensor | Any, Tensor | Any, Tensor | Any]  # dq, dk, dv; None for one that is not needed


@dataclass(frozen=True)
class Plan:
    """The kernels for an attention call.

    kernel: 'hopper', 'portable' or, for the forward pass only, 'decode'. why: the reason, in words. launch: a function
    that starts the kernels for operands with these shapes and strides and this mask; None: every call prepares a
    launch.
    """

    kernel: str
    why: str
    launch: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
        """Return (o, lse) for operands with the same shapes, strides and dtypes as those of the plan."""
        if self.launch is not None:
            return self.launch(q, k, v, scale)
        return KERNELS[self.kernel].forward(q, k, v, causal, scale)

    def backward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        o: Tensor,
        lse: Tensor,
        do: Tensor,
        causal: bool,
        scale: float,
        needs: Sequence[bool] = (True, True, True),
    ) -> Gradients:
        """Return (dq, dk, dv); a gradient that `needs` excludes may be None."""
        if self.launch is not None:
            return self.launch(q, k, v, o, lse, do, scale)
        return KERNELS[self.kernel].backward(q, k, v, o, lse, do, causal, scale, needs)

    def __str__(self) -> str:
        return f"{self.kernel} kernel: {self.why}"


def plan(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Plan:
    """Return the Plan that `attention_forward(q, k, v, causal)` will launch.

    Plans are cached by shapes, strides, dtypes, devices and alignment: for a short sequence the kernel takes 10 µs, and
    inspecting three tensors takes as long. Raises the errors of attention_forward.
    """
    try:
        # Not a loop, because a loop over three tensors costs more than twice as much.
        of_q = (q.shape, q.stride(), q.dtype, q.device, q.data_ptr() % 16)
        of_k = (k.shape, k.stride(), k.dtype, k.device, k.data_ptr() % 16)
        key = (causal, of_q, of_k, v.shape, v.stride(), v.dtype, v.device, v.data_ptr() % 16)
    except (AttributeError, TypeError, RuntimeError):
        return _decide_forward(q, k, v, causal)  # no tensors, or no memory: check_operands names the fault
    if (chosen := _known.get(key)) is None:
        chosen = _remember(key, _decide_forward(q, k, v, causal))
    return chosen


def plan_backward(q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, do: Tensor, causal: bool = False) -> Plan:
    """Return the Plan that `attention_backward` will launch.

    The Hopper kernel adds to dQ with atomics in a varying order, so `torch.use_deterministic_algorithms(True)` selects
    the portable kernels. Raises the errors of attention_backward.
    """
    chosen: Plan | None
    try:
        of_q = (q.shape, q.stride(), q.dtype, q.device, q.data_ptr() % 16)
        of_k = (k.shape, k.stride(), k.dtype, k.device, k.data_ptr() % 16)
        of_v = (v.shape, v.stride(), v.dtype, v.device, v.data_ptr() % 16)
        of_o = (o.shape, o.stride(), o.dtype, o.device, o.data_ptr() % 16)
        of_lse = (lse.shape, lse.stride(), lse.dtype, lse.device, lse.data_ptr() % 16)
        key = (causal, of_q, of_k, of_v, of_o, of_lse, do.shape, do.stride(), do.dtype, do.device, do.data_ptr() % 16)
    except (AttributeError, TypeError, RuntimeError):
        chosen = _decide_backward(q, k, v, o, lse, do, causal)
    else:
        if (chosen := _known.get(key)) is None:
            chosen = _remember(key, _decide_backward(q, k, v, o, lse, do, causal))
    if chosen.kernel == "hopper" and torch.are_deterministic_algorithms_enabled():
        return Plan("portable", "deterministic algorithms are enabled, and the Hopper kernel adds to dQ with atomics")
    return chosen


def _remember(key: tuple[Any, ...], chosen: Plan) -> Plan:
    if len(_known) >= MOST_KNOWN:
        _known.clear()  # a length that grows by one token per step would fill it without end
    _known[key] = chosen
    return chosen


def _decide_forward(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Plan:
    check_operands(q, k, v)
    if reason := decode.why(q):
        return Plan("decode", reason, decode.launch_for(q, k, v, causal))
    if reason := hopper.why_not(q, k, v, this_machine().architecture):
        return Plan("portable", reason)
    return Plan("hopper", ON_HOPPER, hopper.forward_launch(q, k, v, causal))


def _decide_backward(q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, do: Tensor, causal: bool) -> Plan:
    check_operands(q, k, v)
    check_gradient_operands(q, o, lse, do)
    if reason := hopper.why_not(q, k, v, this_machine().architecture):
        return Plan("portable", reason)
    return Plan("hopper", ON_HOPPER, hopper.backward_launch(q, k, v, o, do, causal))
