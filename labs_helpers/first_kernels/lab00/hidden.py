"""Hidden inputs of lab 00."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from labs_helpers.grading.hidden import hidden, normal
from labs_helpers.grading.hidden.launched import between, copied, laid, launched


@hidden("00/0")
def programs_needed(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for block in (16, 128, 1024, 2**20):
        for n in (*draw.integers(1, 100 * block, 4), block * draw.integers(1, 99), block * draw.integers(1, 99) + 1):
            yield function(int(n), block)


@hidden("00/1")
def vector_add(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    n = 64 * int(draw.integers(2, 9))
    yield launched(function, normal(draw, n), normal(draw, n), BLOCK=64)
    for blocks in ({}, {"BLOCK": 64}, {"BLOCK": 512}):
        n = int(draw.integers(2, 1500))
        yield launched(function, normal(draw, n), normal(draw, n), **blocks)


@hidden("00/2")
def transpose_copy(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    n = 32 * int(draw.integers(1, 4))
    found = launched(function, normal(draw, n, n), BLOCK_M=32, BLOCK_N=32)
    yield copied(found), found[0].is_contiguous()
    for blocks in ({}, {"BLOCK_M": 64, "BLOCK_N": 16}, {"BLOCK_M": 16, "BLOCK_N": 64}, {"BLOCK_M": 16}):
        M, N = map(int, draw.integers(2, 120, 2))
        found = launched(function, laid(draw, normal(draw, M, N)), **blocks)
        yield copied(found), found[0].is_contiguous()


@hidden("00/3")
def row_sum(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield launched(function, normal(draw, 5, 64 * int(draw.integers(1, 9))), BLOCK=64)
    for dtype, most, blocks in (
        (torch.float32, 500, {}),
        (torch.float32, 2000, {"BLOCK": 64}),
        (torch.float16, 300, {"BLOCK": 32}),
    ):
        M, N = int(draw.integers(1, 8)), int(draw.integers(most // 2, most))
        yield launched(function, laid(draw, normal(draw, M, N, dtype=dtype)), **blocks)
    # A float16 accumulator loses the last digits of this sum long before the end.
    yield launched(function, laid(draw, between(draw, 8, 60, 3, int(draw.integers(300, 600)))))


@hidden("00/4")
def five_operations(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for itemsize in (1, 2, 2, 4, 4, 8, 8):
        peak, bandwidth = 10 ** draw.uniform(10, 15), 10 ** draw.uniform(9, 12.5)
        yield function(int(2 ** draw.uniform(4, 14)), itemsize, float(peak), float(bandwidth))


@hidden("00/5")
def rms_norm(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield launched(function, normal(draw, 5, 64 * int(draw.integers(1, 9))), eps=1e-6, BLOCK=64)
    for eps, scale, dtype, blocks in (
        (1e-6, 1.0, torch.float32, {}),
        (float(draw.uniform(2, 20)), 2.0, torch.float32, {"BLOCK": 64}),
        (1e-4, 1e-3, torch.float32, {"BLOCK": 256}),  # eps is as large as the mean of the squares
        (1e-6, 900.0, torch.float16, {"BLOCK": 32}),  # squares beyond float16's range
    ):
        M, N = int(draw.integers(1, 6)), int(draw.integers(2, 400))
        x = laid(draw, (scale * (normal(draw, M, N) + 0.5)).to(dtype))
        yield launched(function, x, eps=eps, **blocks)
    nothing = torch.zeros(2, int(draw.integers(2, 90)))
    yield launched(function, nothing, eps=0.01)
