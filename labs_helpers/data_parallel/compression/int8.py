"""Eight bits per number, and a scale per chunk."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from labs_helpers.communication import Communication
from labs_helpers.communication.buckets import FlatBucket
from labs_helpers.data_parallel.compression.compressed import Compressed, Exchange
from labs_helpers.data_parallel.compression.packing import pack, unpack


class Int8(Compressed):
    """Each number as the nearest multiple, −127 … 127, of its chunk's scale: the chunk's largest absolute value / 127.

    chunk: numbers that share a scale, of float32, so that one large number does not round all others to 0; None: the
    whole bucket. The message is n + 4·n/chunk bytes. int8 numbers of different scales cannot be added on the way, and
    those of one scale overflow: an all-gather, of which each rank sends N − 1 messages, against 2·(N − 1)/N of the
    bucket in an all-reduce. So a number has a quarter of float32's bytes, but fewer bytes are sent than in bfloat16
    only on N < 4 ranks, and than in float32 on N < 8. ValueError: a chunk below 1.
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
        for packed in messages:  # one rank after the other: the same order of sums everywhere
            mean += dequantise(unpack(packed, message), self.chunk or n).to(mean.dtype) / group.size
        return mean, dequantise(message, self.chunk or n).to(gradient.dtype)


def quantise(x: Tensor, chunk: int) -> list[Tensor]:
    """(scales, numbers): float32 (⌈n / chunk⌉,) and int8 (n,), of x (n,)."""
    rows = pad(x, (0, -len(x) % chunk)).view(-1, chunk)
    scales = (rows.abs().amax(1) / 127).float()
    steps = rows / torch.where(scales == 0, 1, scales)[:, None]
    return [scales, steps.round().clamp(-127, 127).to(torch.int8).view(-1)[: len(x)]]


def dequantise(message: list[Tensor], chunk: int) -> Tensor:
    """(n,) of float32, from (scales, numbers)."""
    scales, numbers = message
    rows = pad(numbers, (0, -len(numbers) % chunk)).view(-1, chunk)
    return (rows * scales[:, None]).view(-1)[: len(numbers)]
