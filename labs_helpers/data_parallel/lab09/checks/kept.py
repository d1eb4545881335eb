"""What an answer keeps for itself, reached through closures, lists and objects of its own, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from labs_helpers.course.reached_tensors import tensors_reached
from labs_helpers.course.verdict import Wrong

KEPT = (
    "whole gradients stay in a list or a buffer of your own: what is not in .grad any more has to be let go of as well"
)


VIEW = "reduce-scatter into torch.empty_like(shard): a slice keeps all that it is cut from"


def expect_none_kept(case: str, rank: int, view: bool, kept: int, limit: float) -> None:
    """Raise Wrong where shard.grad is a view of something larger, or the answer holds `limit` bytes or more."""
    if view:
        raise Wrong(case, f"rank {rank}: shard.grad is a view of a whole gradient", cause=VIEW)
    if kept >= limit:
        raise Wrong(case, f"rank {rank}: {kept} bytes are still held after backward", cause=KEPT)


class LeftAlone:
    """Tensors that an answer must not change. look: they by name, as they are now."""

    def __init__(self, look: Callable[[], Mapping[str, Tensor]]) -> None:
        self.look, self.before = look, {name: x.detach().clone() for name, x in look().items()}

    def expect(self, cause: str) -> None:
        """Raise Wrong, on a rank, where one of them is gone or is not what it was."""
        now = self.look()
        for name, old in self.before.items():
            if name not in now or not torch.equal(now[name], old):
                raise Wrong("", f"has {'changed' if name in now else 'taken away'} {name}", cause=cause)


def bytes_kept(functions: Iterable[Any], *given: Iterable[Tensor | None]) -> int:
    """Bytes of memory that `functions` hold on to from one call to the next, without that of `given`."""
    known = {x.untyped_storage().data_ptr() for tensors in given for x in tensors if x is not None}
    storages = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors_reached(functions)}
    return sum(nbytes for address, nbytes in storages.items() if address not in known)


def hooks_of(parameters: Iterable[Tensor], *modules: nn.Module) -> list[Any]:
    """The hooks that are registered on them."""
    found = [hook for p in parameters for hook in (getattr(p, "_post_accumulate_grad_hooks", None) or {}).values()]
    for module in modules:
        for kind in ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"):
            found += getattr(module, kind).values()
    return found
