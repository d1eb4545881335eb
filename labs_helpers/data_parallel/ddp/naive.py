"""One all-reduce per parameter, after backward."""

from __future__ import annotations

from labs_helpers.communication.buckets import Bucket
from labs_helpers.data_parallel.ddp.base import DDP


class NaiveDDP(DDP):
    """Backward runs, and then the network: nothing overlaps, and each small gradient pays the latency of a collective
    of its own."""

    def _finish(self) -> None:
        for p in self.trained:
            self.group.start_mean(*Bucket([p]).gather()).wait()
