"""Inputs on which the grader tests answers to lab 02, besides those of the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from labs_helpers.grading.hidden import hidden, normal
from labs_helpers.grading.hidden.launched import between, copied, exactly, laid, launched

BLOCKS = ("BLOCK_M", "BLOCK_N", "BLOCK_K")
ODD: tuple[dict[str, int], ...] = (
    {},
    {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 32},
    {"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 64},
)


@hidden("02/1")
def traffic(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for itemsize in (1, 2, 4, 8):
        for _ in range(3):
            yield function(*map(int, draw.integers(1, 9999, 3)), itemsize)


@hidden("02/2")
def copy_tiles(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    x = normal(draw, 32 * int(draw.integers(1, 4)), 64 * int(draw.integers(1, 4)))
    yield copied(launched(function, x))
    for blocks in ({}, {"BLOCK_M": 16, "BLOCK_N": 32}, {"BLOCK_M": 64, "BLOCK_N": 16}, {"BLOCK_N": 128}):
        M, N = blocks.get("BLOCK_M", 32), blocks.get("BLOCK_N", 64)
        x = normal(draw, M * int(draw.integers(1, 4)), N * int(draw.integers(1, 4)))
        yield copied(launched(function, laid(draw, x), **blocks))


@hidden("02/3")
def tile_matmul(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield launched(function, normal(draw, 64, 64), normal(draw, 64, 64))
    for blocks in ({"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 64}, {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 16}, {}):
        M, N, K = (
            blocks.get(name, default) * int(draw.integers(1, 4 if blocks else 3))
            for name, default in zip(BLOCKS, (64, 64, 32), strict=True)
        )
        yield launched(function, laid(draw, normal(draw, M, K)), laid(draw, normal(draw, K, N)), **blocks)
    a, b = between(draw, 0, 15, 32, 128), between(draw, 0, 15, 128, 32)
    found, *rest = launched(function, laid(draw, a), laid(draw, b), BLOCK_M=16, BLOCK_N=32, BLOCK_K=16)
    yield exactly(found), rest


@hidden("02/4")
def masked_matmul(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for blocks in ODD:
        M, N, K = map(int, draw.integers(2, 90, 3))
        yield launched(function, laid(draw, normal(draw, M, K)), laid(draw, normal(draw, K, N)), **blocks)
    M, N, K = int(draw.integers(2, 40)), int(draw.integers(2, 40)), int(draw.integers(100, 140))
    a, b = laid(draw, between(draw, 0, 15, M, K)), laid(draw, between(draw, 0, 15, K, N))
    found, *rest = launched(function, a, b, BLOCK_M=16, BLOCK_N=32, BLOCK_K=16)
    yield exactly(found), rest


@hidden("02/5")
def matmul_add_relu(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for blocks in ODD:
        M, N, K = map(int, draw.integers(2, 90, 3))
        a, b, c = normal(draw, M, K), normal(draw, K, N), 8 * normal(draw, M, N)
        yield launched(function, laid(draw, a), laid(draw, b), laid(draw, c), **blocks)
    a, b, row = normal(draw, M, K), normal(draw, K, N), 8 * normal(draw, 1, N)
    yield launched(function, a, b, row.expand(M, N), BLOCK_N=32, num_warps=2)
    M, N, K = int(draw.integers(2, 40)), int(draw.integers(2, 40)), int(draw.integers(100, 140))
    a, b, c = between(draw, 0, 15, M, K), between(draw, 0, 15, K, N), between(draw, -2048, -1, M, N)
    found, *rest = launched(function, laid(draw, a), laid(draw, b), laid(draw, 4 * c), BLOCK_M=16, BLOCK_N=32)
    yield exactly(found), rest


@hidden("02/6")
def tile_order(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for group in (1, 2, 3, 4, 8):
        yield function(int(draw.integers(1, 14)), int(draw.integers(1, 9)), group)


@hidden("02/7")
def silu_matmul(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for dtype, blocks in zip((torch.float32, torch.float16, torch.float32), ODD, strict=True):
        M, N, K = map(int, draw.integers(2, 90, 3))
        a, b, bias = normal(draw, M, K, dtype=dtype), normal(draw, K, N, dtype=dtype), 8 * normal(draw, N)
        yield launched(function, laid(draw, a), laid(draw, b), bias.to(dtype), **blocks)
    M, N, K = map(int, draw.integers(2, 60, 3))
    bias = torch.from_numpy(draw.choice([-150.0, -90.0, 0.0, 95.0, 200.0], N)).float()  # exp of it overflows
    yield launched(function, normal(draw, M, K), normal(draw, K, N), bias, BLOCK_M=32, BLOCK_N=32)
