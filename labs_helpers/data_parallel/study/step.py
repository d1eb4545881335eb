"""A training step in phases, with one or several backward passes, for any way of averaging gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch

from labs_helpers.communication.buckets import FlatBucket
from labs_helpers.data_parallel.ddp.base import DDP
from labs_helpers.data_parallel.study.held import plain_bytes
from labs_helpers.data_parallel.study.setting import Setting
from labs_helpers.data_parallel.zero.memory import held_bytes
from labs_helpers.data_parallel.zero.optimizer import ShardedOptimizer

EVERY, LAST = "every pass", "last pass"  # when gradients are averaged


class TrainingStep:
    """A training step of a model on this rank.

    wrapped: the module that the loss calls, by default the model. finish: a phase that waits for the mean of the
    gradients, or None. update: by default the optimizer's step. theirs: whether PyTorch averages the gradients. passes:
    backward passes per step, all over the same batch. sync: LAST averages after the last pass; EVERY calls finish()
    after each pass, which only our wrappers support.
    """

    def __init__(
        self,
        setting: Setting,
        model: torch.nn.Module,
        optimizer: Any,
        *,
        wrapped: torch.nn.Module | None = None,
        finish: Callable[[], object] | None = None,
        update: Callable[[], object] | None = None,
        theirs: bool = False,
        passes: int = 1,
        sync: str = LAST,
    ) -> None:
        self.setting, self.optimizer, self.theirs = setting, optimizer, theirs
        self.passes, self.sync = passes, sync
        self.model: Any = model
        self.wrapped: Any = wrapped or model
        self.finish, self._update = finish, update or optimizer.step
        self._zero_grad = optimizer.zero_grad if isinstance(optimizer, ShardedOptimizer) else model.zero_grad
        self.loss = torch.zeros(())

    def __call__(self) -> torch.Tensor:
        """Take a whole step; return this rank's loss, detached, without waiting for the GPU."""
        for _, phase in self.phases():
            phase()
        return self.loss

    def phases(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield (name, function to call) of each phase, in order."""
        for number in range(1, self.passes + 1):
            waits = self.sync == LAST and number < self.passes
            yield "forward", partial(self._forward, waits)
            yield "backward", partial(self._backward, waits)
            if self.finish is not None and not waits:
                yield "finish", self.finish
        yield "update", self.update

    def _quiet(self, waits: bool) -> AbstractContextManager[object]:
        return self.wrapped.no_sync() if waits and hasattr(self.wrapped, "no_sync") else nullcontext()

    def _forward(self, waits: bool) -> None:
        with self._quiet(waits):
            self.scaled = self.setting.loss(self.wrapped)
        self.loss = self.scaled.detach()
        if self.passes > 1:
            self.scaled = self.scaled / self.passes

    def _backward(self, waits: bool) -> None:
        with self._quiet(waits):
            self.scaled.backward()
        del self.scaled

    def update(self) -> None:
        """Update the parameters, and clear the gradients."""
        self._update()
        self._zero_grad()

    @property
    def _owner(self) -> Any:
        """Return our wrapper or optimizer that sends this rank's gradients, or None."""
        return next((one for one in (self.wrapped, self.optimizer) if isinstance(one, DDP | ShardedOptimizer)), None)

    @property
    def bytes_sent(self) -> int | None:
        """Return the bytes sent so far, assuming ring algorithms; None if PyTorch sends them."""
        if self._owner is None:
            return None if self.theirs else 0
        return int(self._owner.group.bytes_sent)

    def held(self) -> dict[str, int]:
        """Return the bytes of `zero.memory.PARTS` on this rank; gradients include their buckets."""
        if isinstance(self.optimizer, ShardedOptimizer):
            return held_bytes(self.optimizer)
        buckets = getattr(self.wrapped, "buckets", ())
        buffers = [bucket.buffer for bucket in buckets if isinstance(bucket, FlatBucket)]
        return plain_bytes(self.model, self.optimizer, buffers)

    def remove(self) -> None:
        """Remove our hooks from the model."""
        if self._owner is not None:
            self._owner.remove()
