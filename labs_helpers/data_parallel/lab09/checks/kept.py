"""Find memory that an answer keeps in closures, lists, and objects, and tensors that it must not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from labs_helpers.course.reached_tensors import tensors_reached
from labs_helpers.course.verdict import Wrong

KEPT = "a list or a buffer of your own still holds whole gradients: release them there as well as in .grad"


VIEW = "reduce-scatter into torch.empty_like(shard), because a slice keeps the whole tensor alive"


def expect_none_kept(case: str, rank: int, view: bool, kept: int, limit: float) -> None:
    """Raise Wrong if shard.grad is a view of a larger tensor, or the answer holds `limit` bytes or more."""
    if view:
        raise Wrong(case, f"rank {rank}: shard.grad is a view of a whole gradient", cause=VIEW)
    if kept >= limit:
        raise Wrong(case, f"rank {rank} still holds {kept} bytes after backward", cause=KEPT)


class LeftAlone:
    """Remember tensors that an answer must not change. look: returns them as they are now, by name."""

    def __init__(self, look: Callable[[], Mapping[str, Tensor]]) -> None:
        self.look, self.before = look, {name: x.detach().clone() for name, x in look().items()}

    def expect(self, cause: str) -> None:
        """Raise Wrong, on a rank, if one of the tensors is missing or has changed."""
        now = self.look()
        for name, old in self.before.items():
            if name not in now or not torch.equal(now[name], old):
                raise Wrong("", f"has {'changed' if name in now else 'taken away'} {name}", cause=cause)


def bytes_kept(functions: Iterable[Any], *given: Iterable[Tensor | None]) -> int:
    """Return the bytes of memory that `functions` keep between calls, excluding the memory of `given`."""
    known = {x.untyped_storage().data_ptr() for tensors in given for x in tensors if x is not None}
    storages = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors_reached(functions)}
    return sum(nbytes for address, nbytes in storages.items() if address not in known)


def hooks_of(parameters: Iterable[Tensor], *modules: nn.Module) -> list[Any]:
    """Return the hooks registered on the given parameters."""
    found = [hook for p in parameters for hook in (getattr(p, "_post_accumulate_grad_hooks", None) or {}).values()]
    for module in modules:
        for kind in ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"):
            found += getattr(module, kind).values()
    return found
