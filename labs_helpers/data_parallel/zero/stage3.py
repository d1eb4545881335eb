"""ZeRO stage 3: parameters, too, are kept as shards, and gathered unit by unit just before they are used.

    forward    gather a unit, compute, free it               meanwhile the next one is gathered
    backward   gather it again, compute, free it             meanwhile the one before it is gathered
               send its gradients, keep the mean's shard     meanwhile the one before it computes

So a step moves 1.5 times the bytes of stage 2, and a rank holds 1/N of everything, and some two units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from labs_helpers.data_parallel.base import broadcast
from labs_helpers.data_parallel.zero.autograd_hooks import after_backward, before_backward, in_backward
from labs_helpers.data_parallel.zero.optimizer import ShardedOptimizer
from labs_helpers.data_parallel.zero.order import Order
from labs_helpers.data_parallel.zero.reduction import ShardReduction
from labs_helpers.data_parallel.zero.unit import Unit, find_units


class ZeRO3(ShardedOptimizer):
    """As ShardedOptimizer, and: units: modules or a class of modules, usually the model's blocks. What belongs to none
    of them (embedding, output …) is a unit with the model itself, which stays whole from forward to backward.

    All ranks have to run the same units in the same order. Parameters are whole only as their unit computes: it has to
    be called as a module, and they have to be read inside it. Elsewhere they are NaN in their shapes;
    `whole_parameters()` shows them. p.grad is None after a pass outside no_sync().
    reshard_after_forward=False keeps units whole until their backward pass, one gather less: FSDP's SHARD_GRAD_OP.
    device: where to compute, for a model that is on the CPU because it is too large; its units go over one by one.
    prefetch=False gathers a unit only when it is called, to compare.
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
        self.found = find_units(model, units)
        self.units: list[Unit] = []
        self.order = Order(prefetch)
        self.reshard_after_forward = reshard_after_forward
        super().__init__(model, optimizer, params, **settings)
        self.shards = ShardReduction(self.group)
        for module in model.modules():
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, buffer.to(self.settings.device or buffer.device))
        broadcast(model.buffers(), self.group)

    def _place(self, parameters: list[nn.Parameter]) -> None:
        if self.units:  # for a group that is added later
            for bucket in self.buckets:
                bucket.prepare()
            return
        for module, mine in self.found:
            unit = Unit(mine, self.group, self.settings)
            self.units.append(unit)
            self.buckets += unit.buckets
            module.register_forward_pre_hook(partial(self._before_forward, unit), prepend=True, with_kwargs=True)
            module.register_forward_hook(partial(self._after_forward, unit))
            for p in mine:
                if p.requires_grad:
                    p.register_post_accumulate_grad_hook(self._arrived)

    def _arrived(self, parameter: nn.Parameter) -> None:
        self._begin_pass()

    def _before_forward(self, unit: Unit, module: nn.Module, args: Any, kwargs: Any) -> Any:
        if in_backward():
            unit.gather()
            return None
        unit.start_gather()
        self.order.next_forward(unit, first=unit is self.units[0])
        unit.gather()
        if not torch.is_grad_enabled():
            return None
        unit.calls += 1
        return after_backward((args, kwargs), partial(self._after_backward, unit))

    def _after_forward(self, unit: Unit, module: nn.Module, args: Any, output: Any) -> None:
        if in_backward():
            stays = unit.in_backward
        elif not torch.is_grad_enabled():
            stays = False
        else:
            has_way_back = before_backward(output, partial(self._before_backward, unit))
            # The model itself comes first in backward. A unit whose output is an object of one's own is not told when.
            stays = unit is self.units[0] or not self.reshard_after_forward or (not has_way_back and bool(unit.trained))
        if not stays:
            unit.free()

    def _before_backward(self, unit: Unit) -> None:
        self._begin_pass()
        if unit.in_backward:
            return
        unit.in_backward = True
        unit.start_gather()
        self.order.next_backward(unit)
        unit.gather()

    def _after_backward(self, unit: Unit) -> None:
        unit.calls = max(0, unit.calls - 1)
        if unit.calls:  # it was called several times; gradients arrive when backward has passed all of them
            return
        unit.in_backward = False
        if self.synchronising:
            self._reduce(unit)
        unit.free()

    def _reduce(self, unit: Unit) -> None:
        # Not at the arrival of the last gradient, as in stage 2: ranks that use different parameters of a unit would
        # send before different gathers. Where they do, 0 stands for what is missing.
        unit.reduced = True
        for bucket in unit.trained:
            self.shards.start(bucket)

    def _end_pass(self) -> None:
        for unit in reversed(self.units):  # those whose inputs have no way back, at last the model itself
            if not unit.reduced or any(p.grad is not None for bucket in unit.trained for p in bucket.parameters):
                self._reduce(unit)
        self.shards.finish()

    def _end_of_backward(self) -> None:
        super()._end_of_backward()
        for unit in self.units:
            unit.calls, unit.in_backward, unit.reduced = 0, False, False
        self.settle()

    def settle(self) -> None:
        """Frees what a forward pass without a backward pass has left whole: after a step it would be stale."""
        self.order.forget()
        for unit in self.units:
            unit.free()

    def _updated(self) -> None:
        """Nothing: the next gathers bring the new values."""

    @contextmanager
    def whole_parameters(self) -> Iterator[None]:
        """Within it all parameters are whole on every rank, to be read."""
        for unit in self.units:
            unit.gather()
        try:
            yield
        finally:
            self.settle()
