"""What the three stages share: a torch.optim optimizer of which each rank runs 1/N, on its shard of all parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from labs_helpers.communication.weak_hooks import WeakHook, check_unhooked
from labs_helpers.data_parallel.same_model import require_same_model
from labs_helpers.data_parallel.zero.bucket import Bucket, Settings
from labs_helpers.data_parallel.zero.collectives import FlatCommunication
from labs_helpers.data_parallel.zero.elementwise import check_elementwise
from labs_helpers.data_parallel.zero.groups import ParameterGroups
from labs_helpers.data_parallel.zero.passes import BackwardPasses
from labs_helpers.data_parallel.zero.used import note_used


class ShardedOptimizer(ABC):
    """`optimizer(params, **options)` of `model`, over the ranks of `group`; every rank calls each method.

        zero = ZeRO1(model, torch.optim.AdamW, lr=3e-4, weight_decay=0.1)
        loss(model(x)).backward(); zero.step(); zero.zero_grad()

    optimizer: a class of torch.optim that treats each element on its own (SGD, Adam, AdamW, RMSprop …). One that needs
    whole matrices or all parameters, as Muon, Adafactor and LBFGS do, is refused. fused=True among the options saves
    time on GPUs, and with offload on CPUs.
    params: parameters or groups, as torch.optim takes them; None: all of the model's. `zero.optimizer` is the optimizer
    on the shard: a learning rate schedule takes it, and its param_groups are one for one those of `params`.
    group: a torch.distributed process group; its backend is gloo for models on CPUs, NCCL on GPUs. Everybody brings the
    same model, ValueError otherwise, and begins with rank 0's. What is trained is decided here, by requires_grad.

    When `backward()` returns, the mean gradient of all ranks is in the shards. Several passes before a step add up; all
    but the last may stand in `no_sync()`, and then keep whole gradients and send nothing. Gradients are dropped by this
    object's zero_grad(), since the model does not know the shards, and clipped by `clip.clip_gradients`.
    A parameter that a rank has not used counts as 0 there. One that no rank has used gets a gradient of zeros; with
    find_unused_parameters=True none, as in one process, for a small all-reduce per pass that the host waits for.
    Gradients have to be dense, and checkpointed activations of the kind use_reentrant=False.

    compute_dtype, offload, device: see `bucket.Settings`.
    """

    arrangement = ""  # of a stage; ranks that differ in it would call different collectives

    def __init__(
        self,
        model: nn.Module,
        optimizer: Any,
        params: Iterable[Any] | None = None,
        *,
        group: Any = None,
        compute_dtype: torch.dtype | None = None,
        offload: str | None = None,
        device: torch.device | str | None = None,
        find_unused_parameters: bool = False,
        **options: Any,
    ) -> None:
        self.model, self.group = model, FlatCommunication(group)
        self.settings = Settings(compute_dtype, offload, None if device is None else torch.device(device))
        self.find_unused_parameters = find_unused_parameters
        same = (type(self).__name__, self.arrangement, compute_dtype, offload, find_unused_parameters)
        require_same_model(model, self.group, str(same))
        check_unhooked(model.parameters())
        self.groups = ParameterGroups(model)
        added = self.groups.add_all(params)
        works_on = torch.device("cpu") if offload else self.settings.device or self.groups.all[0].device
        check_elementwise(optimizer, {**added[0], **options}, works_on)
        self.buckets: list[Bucket] = []
        self.passes = BackwardPasses(WeakHook(self._begin_pass), WeakHook(self._end_pass))
        self.hooks: list[RemovableHandle] = []
        self._place(self.groups.all)
        self.optimizer: torch.optim.Optimizer = optimizer([self._pieces(each) for each in added], **options)

    @abstractmethod
    def _place(self, parameters: list[nn.Parameter]) -> None:
        """Puts parameters that are new into buckets."""

    @abstractmethod
    def _begin_pass(self) -> None:
        """Before the first gradient of a backward pass."""

    @abstractmethod
    def _send_the_rest(self) -> None:
        """At the end of a backward pass: sends what has not been sent, and waits until all is in the shards."""

    @abstractmethod
    def settle(self) -> None:
        """Until nothing is on its way to the parameters: before they are read or written outside of the model."""

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Options by group. Their "params" are this rank's pieces; `groups.members` has the model's parameters."""
        return self.optimizer.param_groups

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Further parameters of the model, such as some that were frozen so far, with options of their own."""
        added = self.groups.add(param_group)
        self._place(added["params"])
        self.optimizer.add_param_group(self._pieces(added))

    @torch.no_grad()
    def step(self) -> None:
        """Updates this rank's shard; all parameters follow, or do so before they are used.

        RuntimeError: gradients that were not sent, or a parameter that was frozen when it was added and now is trained.
        """
        if self.passes.unsent:
            raise RuntimeError("gradients were not sent: the last backward pass before step() stands outside no_sync()")
        self.groups.check_frozen()
        self.settle()
        for bucket in self.buckets:
            bucket.owned.fetch(bucket.gradient_shard)
        if self.settings.offload and any(bucket.whole.is_cuda for bucket in self.buckets):
            torch.cuda.current_stream().synchronize()  # the CPU is about to read what was fetched
        for bucket in self.buckets:
            bucket.owned.take(bucket.used)
        self.optimizer.step()
        for bucket in self.buckets:
            bucket.owned.give()

    def zero_grad(self) -> None:
        """Drops all gradients, whole ones and shards."""
        for bucket in self.buckets:
            bucket.drop_gradients()
        self.passes.unsent = False

    def no_sync(self) -> AbstractContextManager[None]:
        """Within it, backward passes add to whole gradients on this rank, which the first one outside sends."""
        return self.passes.no_sync()

    def remove(self) -> None:
        """The model is a plain one again: parameters are whole, and this object no longer listens to it."""
        self.settle()
        for hook in self.hooks:
            hook.remove()

    def _end_pass(self) -> None:
        if self.passes.sending:
            self._send_the_rest()
            note_used(self.buckets, self.group, self.find_unused_parameters)

    def _pieces(self, param_group: Mapping[str, Any]) -> dict[str, Any]:
        """A group for the optimizer: in place of the parameters, the pieces of them that are this rank's."""
        piece_of = {p: piece for bucket in self.buckets for p, piece in bucket.piece_of.items()}
        trained = [p for p in param_group["params"] if p.requires_grad]
        return {**param_group, "params": [piece_of[p] for p in trained if p in piece_of]}
