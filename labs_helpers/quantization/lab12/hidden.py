"""Inputs on which the grader tests answers to lab 12, besides those of the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from labs_helpers.grading.hidden import hidden, normal
from labs_helpers.grading.hidden.launched import between, exactly, launched
from labs_helpers.grading.hidden.values import Near
from labs_helpers.quantization.lab12.awq_layers import grouped
from labs_helpers.quantization.lab12.drawn import cached, without_ties

int8, uint8, half, single = torch.int8, torch.uint8, torch.float16, torch.float32


@hidden("12/1")
def quantize_int8(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for dtype in (single, half, torch.bfloat16, single):
        N, K = map(int, draw.integers(2, 40, 2))
        w = 10.0 ** float(draw.uniform(-3, 2)) * normal(draw, N, K)
        w[int(draw.integers(N))] = 0.0
        yield function(without_ties(w.to(dtype)))


@hidden("12/2")
def int4_bytes(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(4):
        zero, N, K = int(draw.integers(0, 16)), int(draw.integers(1, 9)), 2 * int(draw.integers(1, 20))
        yield function(between(draw, -zero, 15 - zero, N, K, dtype=int8), zero, False)
        yield function(between(draw, 0, 255, N, K, dtype=uint8), zero, True)


@hidden("12/3")
def int8_linear(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for dtype, blocks in ((single, {}), (half, {"BLOCK_N": 32, "BLOCK_K": 32}), (single, {"BLOCK_N": 16})):
        M, N, K = int(draw.integers(1, 17)), int(draw.integers(2, 150)), int(draw.integers(2, 150))
        scale = torch.from_numpy(draw.uniform(0.5, 2.0, N)).float()
        yield launched(
            function, normal(draw, M, K, dtype=dtype), between(draw, -127, 127, N, K, dtype=int8), scale, **blocks
        )
    x, q = between(draw, -4, 4, 3, K), between(draw, -7, 7, N, K, dtype=int8)
    found, *rest = launched(function, x, q, torch.from_numpy(draw.integers(1, 3, N)).float())
    yield exactly(found), rest


@hidden("12/4")
def int4_linear(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for dtype, group, blocks in ((single, 32, {}), (half, 64, {"BLOCK_N": 32}), (single, 128, {"BLOCK_K": 64})):
        M, N, groups = int(draw.integers(1, 17)), int(draw.integers(2, 100)), int(draw.integers(2, 5))
        packed = between(draw, 0, 255, N, groups * group // 2, dtype=uint8)
        scale = torch.from_numpy(draw.uniform(0.5, 2.0, (N, groups))).float()
        zero = between(draw, 0, 15, N, groups, dtype=uint8)
        x = normal(draw, M, groups * group, dtype=dtype)
        yield launched(function, x, packed, scale, zero, group, **blocks)


@hidden("12/5")
def speed_up(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(12):
        M, N, K = int(draw.integers(1, 4097)), *(128 * int(size) for size in draw.integers(1, 100, 2))
        group = (None, 32, 64, 128)[int(draw.integers(4))]
        machine = float(draw.uniform(1e11, 8e12)), float(draw.uniform(1e13, 2e15))
        gain, crossover = function(M, N, K, (4, 8)[int(draw.integers(2))], group, *machine)
        yield float(gain), -1 if crossover is None else int(crossover)


@hidden("12/6")
def smooth(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(4):
        T, N, K = map(int, draw.integers(2, 30, 3))
        x, w = normal(draw, T, K), normal(draw, N, K)
        x[:, int(draw.integers(K))] *= 50
        w[:, int(draw.integers(K))] = 0.0
        yield function(x, w, float(draw.uniform(0, 1)))


@hidden("12/7")
def awq_search(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(3):
        T, N, K = int(draw.integers(1, 40)), int(draw.integers(8, 30)), 32 * int(draw.integers(1, 4))
        x, w = normal(draw, T, K), normal(draw, N, K)
        x[:, draw.integers(0, K, 2)] *= float(draw.uniform(5, 30))
        ratio, _, errors = function(x, w, grouped, (0.0, 0.5, 1.0))
        # A factor that differs in its last bit may move a weight to the next code.
        yield float(ratio), [Near(float(error), 0.02) for error in errors]


@hidden("12/8")
def int8_matmul(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for dtype in (single, half, single):
        M, N, K = map(int, draw.integers(2, 60, 3))
        x = without_ties((normal(draw, M, K) * 10.0 ** normal(draw, M, 1).clamp(-2, 1)).to(dtype))
        scale = torch.from_numpy(draw.uniform(0.001, 0.02, N)).float()
        yield function(x, between(draw, -127, 127, N, K, dtype=int8), scale)


@hidden("12/9")
def int8_cache_attention(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for dtype, D, blocks in ((single, 16, {}), (half, 32, {"BLOCK": 16}), (single, 64, {"BLOCK": 64})):
        H, L = int(draw.integers(1, 4)), int(draw.integers(2, 90))
        k, v = (cached(normal(draw, H, L, D), 1 + normal(draw, H, L).abs()) for _ in range(2))
        yield launched(function, normal(draw, H, D, dtype=dtype), *k, *v, **blocks)
