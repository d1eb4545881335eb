"""Named ranges, which traces and Nsight Systems show above the kernels; and plain attention with its parts named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.profiler import record_function

from labs_helpers.measure.machine import has_gpu


@contextmanager
def named(name: str) -> Iterator[None]:
    """Put a range of this name around the block, in PyTorch's profiler and, on a GPU, in Nsight Systems (NVTX)."""
    with record_function(name):
        if has_gpu():
            torch.cuda.nvtx.range_push(name)
        try:
            yield
        finally:
            if has_gpu():
                torch.cuda.nvtx.range_pop()


def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute `attentions.plain`, to the bit, with ranges "scores", "mask", "softmax" and "values" around its parts."""
    group, L = q.shape[1] // k.shape[1], q.shape[2]
    with named("scores"):
        scores = q @ k.repeat_interleave(group, dim=1).mT * q.shape[-1] ** -0.5
    with named("mask"):
        future = torch.ones(L, L, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, -torch.inf)
    with named("softmax"):
        probabilities = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    with named("values"):
        return probabilities @ v.repeat_interleave(group, dim=1)
