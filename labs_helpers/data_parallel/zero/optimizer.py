"""The common part of all stages: a torch.optim optimizer that each rank runs on its 1/N of the parameters."""

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
    """`optimizer(params, **options)` of `model`, sharded over the ranks of `group`. Every rank must call each method.

        zero = ZeRO1(model, torch.optim.AdamW, lr=3e-4, weight_decay=0.1)
        loss(model(x)).backward(); zero.step(); zero.zero_grad()

    optimizer: a class with the interface of torch.optim that updates each element independently (SGD, Adam, AdamW,
    RMSprop …). Raise ValueError for one that needs whole matrices or all parameters, such as Muon, Adafactor, or LBFGS.
    The option fused=True saves time on GPUs, and on CPUs with offload. params: parameters or groups, as for
    torch.optim; None: the whole model. `zero.optimizer` is the optimizer of the shard; pass it to a learning-rate
    schedule. Its param_groups correspond one to one to those of `params`. group: a torch.distributed process group,
    with gloo for models on CPUs and NCCL on GPUs. All ranks must bring the same model (else ValueError) and start from
    rank 0's values. requires_grad decides here which parameters are trained.

    When `backward()` returns, the shards hold the mean gradient of all ranks. Several passes before a step add up. Run
    all but the last inside `no_sync()` to keep whole gradients and send nothing. Clear gradients with this object's
    zero_grad(), because the model does not know the shards, and clip them with `clip.clip_gradients`. A parameter that
    a rank does not use counts as 0 there. If no rank uses it, its gradient is zero. With find_unused_parameters=True it
    has none, as in a single process; this costs a small all-reduce per pass that the host waits for. Gradients must be
    dense, and activation checkpointing must set use_reentrant=False.

    compute_dtype, offload, device: see `bucket.Settings`.
    """

    arrangement = ""  # settings of a stage; ranks that differ in them would call different collectives

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
        """Put new parameters into buckets."""

    @abstractmethod
    def _begin_pass(self) -> None:
        """Prepare for the first gradient of a backward pass."""

    @abstractmethod
    def _send_the_rest(self) -> None:
        """Finish a backward pass: send the remaining gradients, and wait until all are in the shards."""

    @abstractmethod
    def settle(self) -> None:
        """Wait until no transfer to the parameters is in flight, before they are read or written outside the model."""

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Options of each group. Their "params" are this rank's pieces; `groups.members` has the model's parameters."""
        return self.optimizer.param_groups

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add parameters of the model, such as some that were frozen so far, with their own options."""
        added = self.groups.add(param_group)
        self._place(added["params"])
        self.optimizer.add_param_group(self._pieces(added))

    @torch.no_grad()
    def step(self) -> None:
        """Update this rank's shard; all parameters follow before they are used.

        Raise RuntimeError if gradients were not sent, or if a parameter is trained that was frozen when it was added.
        """
        if self.passes.unsent:
            raise RuntimeError("gradients were not sent: run the last backward pass before step() outside no_sync()")
        self.groups.check_frozen()
        self.settle()
        for bucket in self.buckets:
            bucket.owned.fetch(bucket.gradient_shard)
        if self.settings.offload and any(bucket.whole.is_cuda for bucket in self.buckets):
            torch.cuda.current_stream().synchronize()  # the CPU is about to read the fetched gradients
        for bucket in self.buckets:
            bucket.owned.take(bucket.used)
        self.optimizer.step()
        for bucket in self.buckets:
            bucket.owned.give()

    def zero_grad(self) -> None:
        """Drop all gradients, whole ones and shards."""
        for bucket in self.buckets:
            bucket.drop_gradients()
        self.passes.unsent = False

    def no_sync(self) -> AbstractContextManager[None]:
        """Accumulate whole gradients on this rank inside the context; the first backward pass outside sends them."""
        return self.passes.no_sync()

    def remove(self) -> None:
        """Restore a plain model: make all parameters whole, and remove all hooks."""
        self.settle()
        for hook in self.hooks:
            hook.remove()

    def _end_pass(self) -> None:
        if self.passes.sending:
            self._send_the_rest()
            note_used(self.buckets, self.group, self.find_unused_parameters)

    def _pieces(self, param_group: Mapping[str, Any]) -> dict[str, Any]:
        """Return a group for the optimizer with this rank's pieces in place of the parameters."""
        piece_of = {p: piece for bucket in self.buckets for p, piece in bucket.piece_of.items()}
        trained = [p for p in param_group["params"] if p.requires_grad]
        return {**param_group, "params": [piece_of[p] for p in trained if p in piece_of]}
