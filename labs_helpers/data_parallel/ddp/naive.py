"""Average gradients with one all-reduce per parameter, after the backward pass."""

from __future__ import annotations

from labs_helpers.communication.buckets import Bucket
from labs_helpers.data_parallel.ddp.base import DDP


class NaiveDDP(DDP):
    """Send each gradient in its own all-reduce after backward: nothing overlaps, and each one pays the latency."""

    def _finish(self) -> None:
        for p in self.trained:
            self.group.start_mean(*Bucket([p]).gather()).wait()
