"""PowerSGD of rank 1, which approximates a matrix gradient by the product of two vectors.

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
    """Run one iteration of the power method per training step, starting from the previous step's vectors q.

    A parameter's gradient is a matrix M, (rows, columns), where columns covers all dimensions but the first. Each rank
    computes p = M·q, and the ranks average and normalize p. Each rank then computes q = Mᵀ·p, and the ranks average q.
    M becomes p·qᵀ. Both products are linear in M, so the averages can be all-reduces, whose bytes do not grow with the
    number of ranks: rows + columns float32 numbers instead of rows · columns. Vectors, and matrices that would not
    shrink, are sent uncompressed together with p.

    The second all-reduce of a bucket starts in `finish()`, after the first ones of all buckets. Backward therefore
    hides p, but not q.
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
    """Return (rows, columns) of a parameter's gradient as a matrix, in memory order.

    None if p and q together would have as many numbers as the gradient, or more.
    """
    if p.ndim < 2 or p.numel() == 0:
        return None
    rows = p.shape[memory_order(p)[0]]
    columns = p.numel() // rows
    return (rows, columns) if rows + columns < rows * columns else None


def _random(M: Tensor) -> Tensor:
    """Return the initial q, (columns,), which is the same on every rank."""
    generator = torch.Generator().manual_seed(M.shape[1])
    return torch.randn(M.shape[1], generator=generator).to(M)


def _normalised(v: Tensor, instead: Tensor) -> Tensor:
    """Return v scaled to length 1, or `instead` if the length is 0 or not finite, as after an overflow."""
    length = torch.linalg.vector_norm(v)
    return torch.where(length.isfinite() & (length > 0), v / length, instead)
