"""Compress gradients to int8 numbers with one scale per chunk."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from labs_helpers.communication import Communication
from labs_helpers.communication.buckets import FlatBucket
from labs_helpers.data_parallel.compression.compressed import Compressed, Exchange
from labs_helpers.data_parallel.compression.packing import pack, unpack


class Int8(Compressed):
    """Round each number to the nearest multiple, −127 … 127, of its chunk's scale (largest absolute value / 127).

    chunk: the number of values that share one float32 scale; None is the whole bucket. With small chunks, one large
    value rounds fewer others to 0. A message takes n + 4·n/chunk bytes.

    Messages cannot be added on the way: their scales differ, and sums in int8 overflow. Ranks use an all-gather, in
    which each rank sends N − 1 messages; an all-reduce sends 2·(N − 1)/N times the bucket. Therefore, int8 sends fewer
    bytes than bfloat16 only on N < 4 ranks, and fewer than float32 on N < 8. ValueError for a chunk below 1.
    """

    def __init__(self, chunk: int | None = 1024, error_feedback: bool = True) -> None:
        super().__init__(error_feedback)
        if chunk is not None and chunk < 1:
            raise ValueError(f"chunk is {chunk!r}, not a number of 1 or more, nor None")
        self.chunk = chunk or 0

    def exchange(self, gradient: Tensor, bucket: FlatBucket, group: Communication) -> Exchange:
        n = gradient.numel()
        message = quantise(gradient, self.chunk or n)
        messages, request = group.start_all_gather(pack(message))
        yield request
        mean = torch.zeros_like(gradient)
        for packed in messages:  # in rank order, so that all ranks sum in the same order
            mean += dequantise(unpack(packed, message), self.chunk or n).to(mean.dtype) / group.size
        return mean, dequantise(message, self.chunk or n).to(gradient.dtype)


def quantise(x: Tensor, chunk: int) -> list[Tensor]:
    """Return (scales, numbers) of x (n,): float32 (⌈n / chunk⌉,) and int8 (n,)."""
    rows = pad(x, (0, -len(x) % chunk)).view(-1, chunk)
    scales = (rows.abs().amax(1) / 127).float()
    steps = rows / torch.where(scales == 0, 1, scales)[:, None]
    return [scales, steps.round().clamp(-127, 127).to(torch.int8).view(-1)[: len(x)]]


def dequantise(message: list[Tensor], chunk: int) -> Tensor:
    """Return float32 (n,) from (scales, numbers)."""
    scales, numbers = message
    rows = pad(numbers, (0, -len(numbers) % chunk)).view(-1, chunk)
    return (rows * scales[:, None]).view(-1)[: len(numbers)]
