"""ZeRO stage 3: parameters are also sharded, and gathered unit by unit just before use.

    forward    gather a unit, compute, free it               meanwhile gather the next unit
    backward   gather it again, compute, free it             meanwhile gather the previous unit
               send its gradients, keep the mean's shard     meanwhile the previous unit computes

A step sends 1.5 times as many bytes as in stage 2. A rank holds 1/N of all states and about two whole units.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import nn

from labs_helpers.communication.weak_hooks import WeakHook, hook_gradient
from labs_helpers.data_parallel.ddp.base import broadcast
from labs_helpers.data_parallel.zero.autograd_hooks import after_backward, before_backward, in_backward
from labs_helpers.data_parallel.zero.optimizer import ShardedOptimizer
from labs_helpers.data_parallel.zero.order import Order
from labs_helpers.data_parallel.zero.reduction import ShardReduction
from labs_helpers.data_parallel.zero.unit import Unit, find_units, move_buffers, whole


class ZeRO3(ShardedOptimizer):
    """Shard parameters, gradients, and optimizer states; arguments as for ShardedOptimizer, and the following.

    units: modules or a class of modules, usually the model's blocks. Parameters outside them (embedding, output …) form
    a unit with the model itself, which stays whole from forward to backward.

    All ranks must call the same units in the same order, else RuntimeError: it is raised in the first backward pass,
    and with find_unused_parameters in every pass. Parameters are whole only while their unit computes, so call a unit
    as a module and read its parameters inside it. Elsewhere they read as NaN with the same shapes; `whole_parameters()`
    makes them whole. p.grad is None after a pass outside no_sync(). Under torch.autocast, autograd keeps 16-bit copies
    of all weights until backward; use compute_dtype instead. Compile the modules inside a unit, not the unit.
    reshard_after_forward=False keeps units whole until their backward pass and saves one gather (FSDP's SHARD_GRAD_OP).
    device: where to compute if the model is on the CPU because of its size; units move there one by one. prefetch=False
    gathers a unit only when it is called, for comparison.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Any,
        params: Any = None,
        *,
        units: type[nn.Module] | Iterable[nn.Module],
        prefetch: bool = True,
        reshard_after_forward: bool = True,
        **settings: Any,
    ) -> None:
        self.arrangement = f"prefetch={prefetch}, reshard_after_forward={reshard_after_forward}"
        self.order, self.reshard_after_forward = Order(prefetch), reshard_after_forward
        self.found, self.units = find_units(model, units), list[Unit]()
        self.order_checked = False
        super().__init__(model, optimizer, params, **settings)
        self.shards = ShardReduction(self.group)
        move_buffers(model, self.settings.device)
        broadcast(model.buffers(), self.group)

    def _place(self, parameters: list[nn.Parameter]) -> None:
        for bucket in self.buckets:  # for a group added later
            bucket.thaw()
        found, self.found = self.found, []  # units are created once, from all parameters
        names = {module: name or "the model itself" for name, module in self.model.named_modules()}
        for module, mine in found:
            unit = Unit(mine, self.group, self.settings, names[module], self.order.started)
            self.units.append(unit)
            self.buckets += unit.buckets
            # The module keeps this object alive; otherwise its parameters could not be gathered any more.
            before, after = partial(self._before_forward, unit), partial(self._after_forward, unit)
            self.hooks += [
                module.register_forward_pre_hook(before, prepend=True, with_kwargs=True),
                module.register_forward_hook(after),
                *(hook_gradient(p, self.passes.begin) for p in mine if p.requires_grad),
            ]

    def _begin_pass(self) -> None:
        for unit in self.units:
            unit.in_backward = unit.reduced = False

    def _before_forward(self, unit: Unit, module: nn.Module, args: Any, kwargs: Any) -> Any:
        unit.start_gather()
        if not in_backward():
            self.order.next_forward(unit, first=unit is self.units[0])
        unit.gather()
        if in_backward() or not torch.is_grad_enabled():
            return None
        unit.calls += 1
        return after_backward((args, kwargs), WeakHook(self._after_backward, self.units.index(unit)))

    def _after_forward(self, unit: Unit, module: nn.Module, args: Any, output: Any) -> None:
        if in_backward():
            stays = unit.in_backward
        elif not torch.is_grad_enabled():
            stays = False
        else:
            certain = before_backward(output, WeakHook(self._before_backward, self.units.index(unit)))
            # The model itself comes first in backward. A unit without a certain backward hook stays whole, too.
            stays = unit is self.units[0] or not self.reshard_after_forward or (not certain and bool(unit.trained))
        if not stays:
            unit.free()

    def _before_backward(self, number: int) -> None:
        unit = self.units[number]
        self.passes.begin()
        if unit.in_backward:
            return
        unit.in_backward = True
        unit.start_gather()
        self.order.next_backward(unit)
        unit.gather()

    def _after_backward(self, number: int) -> None:
        unit = self.units[number]
        unit.calls = max(0, unit.calls - 1)
        if unit.calls:  # called several times: its gradients are complete after backward has passed all calls
            return
        unit.in_backward = False
        if self.passes.sending:
            self._reduce(unit)
        unit.free()

    def _reduce(self, unit: Unit) -> None:
        # Not at the last gradient, as in stage 2: ranks that use different parameters of a unit would send before
        # different gathers. A missing gradient counts as 0.
        unit.reduced = True
        self.order.started.append(f"reduce {unit.name}")
        for bucket in unit.trained:
            self.shards.start(bucket)

    def _send_the_rest(self) -> None:
        for unit in reversed(self.units):  # units whose inputs require no gradient, and finally the model itself
            if not unit.reduced or any(p.grad is not None for bucket in unit.trained for p in bucket.parameters):
                self._reduce(unit)
        self.shards.finish()

    def _end_pass(self) -> None:
        super()._end_pass()
        if self.find_unused_parameters or not self.order_checked:
            self.order.require_same(
                self.group
            )  # the host waits for this check: run it in every pass only if it waits anyway
            self.order_checked = True
        self.settle()

    def settle(self) -> None:
        """Free units left whole by a forward pass without a backward pass; after a step they would be stale."""
        self.order.forget()
        for unit in self.units:
            unit.calls = 0
            unit.free()

    def whole_parameters(self) -> AbstractContextManager[None]:
        """Make all parameters whole on every rank inside the context, for reading."""
        return whole(self.units)

    def remove(self) -> None:
        super().remove()
        for unit in self.units:
            unit.gather()
