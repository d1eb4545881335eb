"""Detect the beginning and the end of a backward pass, and whether it sends its gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class BackwardPasses:
    """Callbacks around each backward pass.

    at_begin: called before the first gradient reported by a hook. at_end: called when everything else in the pass has
    finished, before `backward()` returns. sending: False inside `no_sync()`. unsent: some gradients were not sent.
    """

    def __init__(self, at_begin: Callable[[], None], at_end: Callable[[], None]) -> None:
        self.at_begin, self.at_end = at_begin, at_end
        self.sending, self.unsent = True, False
        self._running = -1

    def begin(self, gradient_of: Tensor | None = None) -> None:
        """Mark the beginning of a pass. Hooks call this at each gradient, or earlier."""
        this_pass = torch._C._current_graph_task_id()  # a flag would stay set if an error ended the pass
        if this_pass == self._running:
            return
        self._running, self.unsent = this_pass, True
        torch.autograd.Variable._execution_engine.queue_callback(self._end)
        self.at_begin()

    def _end(self) -> None:
        self.at_end()
        self.unsent = not self.sending

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.sending = self.sending, False
        try:
            yield
        finally:
            self.sending = before
