"""Compress gradients to their largest entries (top-k), sent with their positions."""

from __future__ import annotations

import torch
from torch import Tensor

from labs_helpers.communication import Communication
from labs_helpers.communication.buckets import FlatBucket
from labs_helpers.data_parallel.compression.compressed import Compressed, Exchange
from labs_helpers.data_parallel.compression.packing import pack, unpack


class TopK(Compressed):
    """Send the fraction `ratio` of a bucket's entries with the largest absolute values; the others count as 0.

    An entry consists of its value, in the gradient's dtype, and an index of 4 bytes. In bfloat16, an entry grows from 2
    bytes to 6. Ranks choose different entries, so messages cannot be added on the way: each rank sends (N − 1)·k
    entries in an all-gather, where an all-reduce sends 2·(N − 1)/N of all entries. On N ranks, top-k sends fewer bytes
    only if ratio < 1/N in float32, or 2/(3·N) in bfloat16. (Aji and Heafield, 2017; Lin et al., Deep Gradient
    Compression, 2018.) ValueError for a ratio outside (0, 1].
    """

    def __init__(self, ratio: float = 0.01, error_feedback: bool = True) -> None:
        super().__init__(error_feedback)
        if not 0 < ratio <= 1:
            raise ValueError(f"ratio is {ratio!r}, not above 0 and at most 1")
        self.ratio = ratio

    def exchange(self, gradient: Tensor, bucket: FlatBucket, group: Communication) -> Exchange:
        n = gradient.numel()
        count = max(1, round(self.ratio * n))
        places = gradient.abs().topk(count, sorted=False).indices
        entries = [gradient[places].to(bucket.buffer.dtype), places.int()]
        messages, request = group.start_all_gather(pack(entries))
        yield request
        mean, sent = torch.zeros_like(gradient), torch.zeros_like(gradient)
        for rank, message in enumerate(messages):  # in rank order, so that all ranks sum in the same order
            values, indices = unpack(message, entries)
            # No index occurs twice in one message, so the order within it does not matter.
            mean.index_add_(0, indices, values.to(mean.dtype) / group.size)
            if rank == group.rank:
                sent.index_copy_(0, indices.long(), values.to(sent.dtype))
        return mean, sent
