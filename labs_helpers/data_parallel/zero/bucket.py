"""Parameters of one dtype that are stored one after another in flat memory and travel in one collective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from labs_helpers.communication.interface import Request
from labs_helpers.data_parallel.zero.collectives import FlatCommunication
from labs_helpers.data_parallel.zero.owned import Owned, empty_beside
from labs_helpers.data_parallel.zero.partition import Layout


@dataclass(frozen=True)
class Settings:
    """Settings of all buckets.

    compute_dtype: dtype of parameters and gradients, with float32 master weights for the optimizer; None: the model's
    own dtypes. offload: what to keep in CPU memory, None, "optimizer" (its states and master weights), or "parameters"
    (also stage 3's shards). device: where the model computes, in stage 3 only; None: where its parameters are.
    """

    compute_dtype: torch.dtype | None = None
    offload: str | None = None
    device: torch.device | None = None

    def __post_init__(self) -> None:
        if self.offload not in (None, "optimizer", "parameters"):
            raise ValueError(f"offload is {self.offload!r}; it must be None, 'optimizer', or 'parameters'")


class Bucket:
    """A flat tensor whose views are some of the model's parameters, with rank 0's values.

    whole: (layout.numel,). shard: (layout.shard_numel,), this rank's part of whole, or with `apart` a copy, so that
    whole can be freed. gradient_shard: the same part of the mean gradient, or None. used: for each parameter, whether
    it has received a gradient since the last `drop_gradients`.
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], group: FlatCommunication, settings: Settings, apart: bool = False
    ) -> None:
        self.parameters, self.group = list(parameters), group
        self.layout = Layout([p.shape for p in parameters], group.size)
        self.settings, self.apart = settings, apart
        device = settings.device or parameters[0].device
        flat = torch.zeros(self.layout.numel, dtype=parameters[0].dtype, device=device)
        for view, p in zip(self.layout.views(flat), parameters, strict=True):
            view.copy_(p.detach())
        group.broadcast(flat)

        self.narrowed = settings.compute_dtype is not None and flat.is_floating_point()
        self.whole = flat.to(settings.compute_dtype) if self.narrowed else flat
        self.views = self.layout.views(self.whole)
        self.shard = self.layout.shard(self.whole, group.rank)
        if apart:
            place = torch.device("cpu") if settings.offload == "parameters" else device
            self.shard = empty_beside(self.shard.numel(), self.shard.dtype, place, device).copy_(self.shard)
        self.owned = self._own(self.layout.shard(flat, group.rank))
        self.point()

        self.gradient: Tensor | None = None  # whole; kept by stage 1
        self.gradient_shard: Tensor | None = None
        self.pending: Request | None = None
        self.used = [False] * len(self.parameters)
        self.awaited = 0  # gradients that have not arrived yet in this backward pass

    def _own(self, exact: Tensor) -> Owned:
        """Return the tensors that the optimizer updates. exact: the shard before rounding.

        Frozen parameters need no master weights and are not offloaded.
        """
        self.trained = any(p.requires_grad for p in self.parameters)
        pieces, device = self.layout.pieces(self.group.rank), self.shard.device
        if not self.trained:
            return Owned(pieces, self.shard, None, device)
        device = torch.device("cpu") if self.settings.offload else device
        return Owned(pieces, self.shard, exact.float() if self.narrowed else None, device)

    def thaw(self) -> None:
        """Create the optimizer's tensors if all parameters were frozen and some are now trained."""
        if not self.trained:
            self.owned = self._own(self.shard)

    @property
    def piece_of(self) -> dict[nn.Parameter, nn.Parameter]:
        """Map each parameter to its piece in this rank's optimizer, if it has one."""
        owned = zip(self.owned.pieces, self.owned.tensors, strict=True)
        return {self.parameters[piece.number]: tensor for piece, tensor in owned}

    def point(self) -> None:
        """Make the parameters views of `whole`."""
        for p, view in zip(self.parameters, self.views, strict=True):
            p.data = view

    def load(self, weights: Sequence[Tensor]) -> None:
        """Load the given values, one tensor per parameter."""
        for piece in self.owned.pieces:
            part = weights[piece.number].detach().flatten()[piece.in_tensor]
            self.shard[piece.in_shard] = part
            self.owned.home[piece.in_shard] = part
        if not self.apart:
            for view, weight in zip(self.views, weights, strict=True):
                view.copy_(weight)

    def collect(self, flat: Tensor | None = None, keep: bool = False) -> Tensor:
        """Return the gradients as (layout.numel,), in `flat` if given, with zeros for missing ones and in gaps.

        Afterwards p.grad is None or, with `keep`, a view of the result. All gradients are copied together. Letting
        autograd accumulate directly into flat memory causes more traffic, because the memory must first be cleared and
        then read and written again.
        """
        if flat is None:
            flat = torch.empty_like(self.whole)
            for gap in self.layout.gaps:
                flat[gap].zero_()
        places, gradients = [], []
        for index, (p, view) in enumerate(zip(self.parameters, self.layout.views(flat), strict=True)):
            if p.grad is None:
                view.zero_()
            else:
                self.used[index] = True
                if p.grad.data_ptr() != view.data_ptr():
                    places.append(view)
                    gradients.append(p.grad)
            p.grad = view if keep else None
        if places:
            torch._foreach_copy_(places, gradients)
        return flat

    def drop_gradients(self) -> None:
        for p in self.parameters:
            p.grad = None
        self.gradient = self.gradient_shard = None
        self.used = [False] * len(self.parameters)
