"""PowerSGD of rank 1: a matrix gradient as the product of two vectors.

Vogels, Karimireddy, Jaggi, PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization, 2019.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from labs_helpers.communication import Communication
from labs_helpers.communication.buckets import FlatBucket, memory_order
from labs_helpers.data_parallel.compression.compressed import Compressed, Exchange


class PowerSGD(Compressed):
    """A step of the power method per step of training, from the vectors q of the step before.

    A parameter's gradient is a matrix M, (rows, columns): its first dimension and all others. Each rank computes
    p = M·q, all p are averaged and normalised; each rank computes q = Mᵀ·p, and all q are averaged: M becomes p·qᵀ.
    Both are linear in M, so that the averages can be all-reduces, whose bytes do not grow with the ranks:
    rows + columns numbers of float32 in place of rows · columns. Vectors, and matrices for which that is no less, go as
    they are, with p.

    The second all-reduce of a bucket begins in `finish()`, after the first ones of all buckets: backward hides p, and q
    travels after it.
    """

    def __init__(self, error_feedback: bool = True) -> None:
        super().__init__(error_feedback)
        self.q: WeakKeyDictionary[FlatBucket, list[Tensor]] = WeakKeyDictionary()

    def exchange(self, gradient: Tensor, bucket: FlatBucket, group: Communication) -> Exchange:
        shapes = [matrix_shape(p) for p in bucket.parameters]
        parts = gradient.split([p.numel() for p in bucket.parameters])
        matrices = [part.view(shape) for part, shape in zip(parts, shapes, strict=True) if shape is not None]
        whole = [part for part, shape in zip(parts, shapes, strict=True) if shape is None]
        start = [_random(M) for M in matrices]
        q = [_normalised(v, instead=s) for v, s in zip(self.q.get(bucket, start), start, strict=True)]

        first = torch.cat([*(M @ v for M, v in zip(matrices, q, strict=True)), *whole])
        yield group.start_mean(first)
        averaged = first.split([*map(len, matrices), *map(len, whole)])
        p = [_normalised(v, instead=v) for v in averaged[: len(matrices)]]
        mine = [M.T @ v for M, v in zip(matrices, p, strict=True)]
        means = [v.clone() for v in mine]
        if matrices:
            second = torch.cat(mine)
            yield group.start_mean(second)
            means = list(second.split([len(v) for v in mine]))
            self.q[bucket] = means

        mean, sent = torch.empty_like(gradient), gradient.clone()
        number = 0
        rest = iter(averaged[len(matrices) :])
        sizes = [p.numel() for p in bucket.parameters]
        for shape, out, own in zip(shapes, mean.split(sizes), sent.split(sizes), strict=True):
            if shape is None:
                out.copy_(next(rest))
            else:
                torch.outer(p[number], means[number], out=out.view(shape))
                torch.outer(p[number], mine[number], out=own.view(shape))
                number += 1
        return mean, sent


def matrix_shape(p: Tensor) -> tuple[int, int] | None:
    """(rows, columns) of a parameter's gradient as a matrix, in the order of its memory; None where p and q would be no
    fewer numbers."""
    if p.ndim < 2 or p.numel() == 0:
        return None
    rows = p.shape[memory_order(p)[0]]
    columns = p.numel() // rows
    return (rows, columns) if rows + columns < rows * columns else None


def _random(M: Tensor) -> Tensor:
    """The q to begin with, (columns,): the same on every rank."""
    generator = torch.Generator().manual_seed(M.shape[1])
    return torch.randn(M.shape[1], generator=generator).to(M)


def _normalised(v: Tensor, instead: Tensor) -> Tensor:
    """v of length 1; `instead` of v where it has none, as the q of a gradient of zeros or of one that overflowed."""
    length = torch.linalg.vector_norm(v)
    return torch.where(length.isfinite() & (length > 0), v / length, instead)
