"""A part of the model, usually a block, whose parameters stage 3 gathers and frees together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from labs_helpers.communication.interface import Request
from labs_helpers.data_parallel.zero.bucket import Bucket, Settings
from labs_helpers.data_parallel.zero.collectives import FlatCommunication
from labs_helpers.data_parallel.zero.offload import CopyStream


class Unit:
    """The sharded parameters of one module, excluding units inside it; they are whole between `gather()` and `free()`.

    When whole, they are views of the gathered memory, and nothing is copied. When freed, this memory has size 0, and
    they read as NaN with the same shapes (0 for integers). The storage itself is resized, because autograd saves views
    of it in the forward pass and must find the weights there in the backward pass.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        group: FlatCommunication,
        settings: Settings,
        name: str,
        started: MutableSequence[str],
    ) -> None:
        """Create the buckets. name: of `module` in the model. started: receives a line for each collective started."""
        self.group, self.name, self.started = group, name, started
        kinds: dict[tuple[torch.dtype, bool], list[nn.Parameter]] = {}
        for p in parameters:
            kinds.setdefault((p.dtype, p.requires_grad), []).append(p)  # frozen parameters have no gradients to send
        self.buckets = [Bucket(some, group, settings, apart=True) for some in kinds.values()]
        nothing = [b.whole.new_full((), float("nan") if b.whole.is_floating_point() else 0) for b in self.buckets]
        self.freed = [
            [(p, scalar.expand(p.shape)) for p in b.parameters] for b, scalar in zip(self.buckets, nothing, strict=True)
        ]
        on_cpu = settings.offload == "parameters" and len(parameters) > 0
        self.copies = CopyStream(self.buckets[0].whole.device) if on_cpu else None
        self.requests: list[Request] = []
        self.gathered = True
        self.calls = 0  # forward passes whose backward pass has not run yet
        self.in_backward = self.reduced = False
        self.free()

    @property
    def trained(self) -> list[Bucket]:
        return [bucket for bucket in self.buckets if any(p.requires_grad for p in bucket.parameters)]

    def start_gather(self) -> None:
        """Start to gather the parameters, unless that has already happened."""
        if self.gathered or self.requests:
            return
        self.started.append(f"gather {self.name}")
        for bucket in self.buckets:
            bucket.whole.untyped_storage().resize_(bucket.whole.nbytes)
            if self.copies is None:
                self.requests.append(self.group.start_gather(bucket.whole, bucket.shard))
                continue
            mine = bucket.layout.shard(bucket.whole, self.group.rank)
            with self.copies.queue():
                mine.copy_(bucket.shard, non_blocking=True)
                self.requests.append(self.group.start_gather(bucket.whole, mine))

    def gather(self) -> None:
        """Make the parameters whole."""
        self.start_gather()
        if self.gathered:
            return
        self._arrive()
        for bucket in self.buckets:
            bucket.point()
        self.gathered = True

    def free(self) -> None:
        """Free everything but the shards, including parameters that were gathered without being used."""
        self._arrive()
        for bucket, freed in zip(self.buckets, self.freed, strict=True):
            if self.gathered:
                for p, nothing in freed:
                    p.data = nothing
            bucket.whole.untyped_storage().resize_(0)
        self.gathered = False

    def _arrive(self) -> None:
        for request in self.requests:
            request.wait()
        if self.copies is not None and self.requests:
            self.copies.wait()
        self.requests = []


def find_units(
    model: nn.Module, units: type[nn.Module] | Iterable[nn.Module]
) -> list[tuple[nn.Module, list[nn.Parameter]]]:
    """Return (module, parameters) for the model itself, first, and for each unit, in the model's order.

    A parameter belongs to the innermost unit that contains it. units: modules inside the model, or a class of modules.
    Raise ValueError if there is no such module, or if two units share a parameter.
    """
    names = {module: name for name, module in model.named_modules()}
    if isinstance(units, type):
        wanted = {module for module in names if isinstance(module, units)}
        missing = "" if wanted else f"the model contains no {units.__name__}"
    else:
        wanted = set(units)
        missing = "".join([f"a unit is not inside the model: {m}" for m in wanted if m not in names][:1])
    if never := [names[m] for m in wanted if isinstance(m, nn.ModuleList | nn.ModuleDict) and m in names]:
        missing = f"{never[0]} is a list of modules and is never called itself: pass its modules as units"
    if missing:
        raise ValueError(missing)
    found: dict[nn.Module, list[nn.Parameter]] = {module: [] for module in names if module in wanted or module is model}
    owner: dict[nn.Parameter, nn.Module] = {}

    def walk(module: nn.Module, unit: nn.Module) -> None:
        unit = module if module in found else unit
        for name, p in module.named_parameters(recurse=False):
            if p not in owner:
                owner[p] = unit
                found[unit].append(p)
            elif owner[p] is not unit:
                both = " and ".join(names[m] or "the model itself" for m in (owner[p], unit))
                raise ValueError(
                    f"{names[module]}.{name} is a parameter of two units, {both}, and one would free it while the "
                    "other computes: make them one unit, or leave both to the model"
                )
        for child in module.children():
            walk(child, unit)

    walk(model, model)
    return list(found.items())


@contextmanager
def whole(units: Sequence[Unit]) -> Iterator[None]:
    """Make the parameters of these units whole inside the context."""
    for unit in units:
        unit.gather()
    try:
        yield
    finally:
        for unit in units:
            unit.free()


def move_buffers(model: nn.Module, device: torch.device | None) -> None:
    """Move buffers to the device where the units compute."""
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            setattr(module, name, buffer.to(device or buffer.device))
