"""Hidden inputs of lab 04."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labs_helpers.grading.hidden import hidden, normal
from labs_helpers.grading.hidden.launched import digest, laid, launched


@hidden("04/1")
def attention_costs(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for itemsize in (1, 2, 2, 4, 4, 8):
        BLOCK_M, D = (int(2 ** draw.integers(4, 8)) for _ in range(2))
        B, H, tiles = map(int, draw.integers(1, 40, 3))
        yield function(B, H, BLOCK_M * tiles, D, itemsize, BLOCK_M)


@hidden("04/2")
def merge(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for level in (0.0, -200.0, 300.0, float(draw.uniform(-50, 50))):
        rows, D = map(int, draw.integers((4, 1), (40, 20)))
        given: list[Tensor] = []
        empty = draw.permutation(np.arange(rows) % 4)  # both parts, one, the other or neither has seen the row
        for part in (1, 2):
            m, total = level + 3 * normal(draw, rows), 1 + normal(draw, rows).abs()
            o = total[:, None] * normal(draw, rows, D)
            seen = torch.from_numpy((empty & part) == 0)
            given += [m.where(seen, -torch.inf), total * seen, o * seen[:, None]]
        before = [digest(tensor) for tensor in given]
        found = function(*given)
        addresses = {tensor.data_ptr() for tensor in given}
        yield found, [tensor.data_ptr() in addresses for tensor in found]
        yield before == [digest(tensor) for tensor in given]


@hidden("04/3")
def row_softmax(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield launched(function, normal(draw, 4, 64 * int(draw.integers(1, 4))), BLOCK=64)
    for level, dtype, BLOCK in (
        (0.0, torch.float32, 128),
        (150.0, torch.float32, 64),
        (-170.0, torch.float32, 32),
        (None, torch.float32, 16),  # the level rises and falls from block to block
        (0.0, torch.float16, 64),
    ):
        M, N = map(int, draw.integers((2, 3), (7, 330)))
        x = 3 * normal(draw, M, N)
        steps = torch.from_numpy(draw.choice([-300.0, 0.0, 300.0, 500.0], -(-N // BLOCK))).float()
        x += steps.repeat_interleave(BLOCK)[:N] if level is None else level
        yield launched(function, laid(draw, x.to(dtype)), BLOCK=BLOCK)
    x = normal(draw, 4, int(draw.integers(100, 200)))
    x[1, : int(draw.integers(40, 90))] = x[2, 20:70] = x[3, int(draw.integers(20, 60)) :] = -torch.inf
    yield launched(function, x, BLOCK=16)


# Score levels, 8 keys each: from one tile of 16 to the next they rise and fall by more than exp can represent.
LEVELS = torch.tensor([0.0, -95.0, -95.0, -95.0, 100.0, 0.0, 195.0, 100.0, -95.0, 290.0])


def operands(
    draw: np.random.Generator, Lq: int, Lk: int, D: int, dtype: torch.dtype = torch.float32, level: float | None = 0.0
) -> list[Tensor]:
    """Return q, k and v with a random number of heads and different strides, except for the last stride.

    level: of the scores at a scale of 0.25; None for a level that rises and falls every 8 keys.
    """
    B, H = map(int, draw.integers(1, 3, 2))
    q, k, v = normal(draw, B, H, Lq, D), normal(draw, B, H, Lk, D), 0.5 + normal(draw, B, H, Lk, D)
    if level != 0:
        levels = (LEVELS + 3 * normal(draw, len(LEVELS))).repeat_interleave(8).repeat(Lk // 80 + 1)[:Lk]
        q[..., 0], k[..., 0] = 16.0, (levels if level is None else level) / 4.0
    turned = [tensor.to(dtype).transpose(1, 2).contiguous().transpose(1, 2) for tensor in (q, v)]
    room = k.new_zeros((B, H, Lk + 3, D), dtype=dtype)
    room[:, :, 1:-2] = k
    return [turned[0], room[:, :, 1:-2], turned[1]]


CASES = (
    (torch.float32, 0.0, {"BLOCK_M": 32, "BLOCK_N": 16}),
    (torch.float32, 100.0, {"BLOCK_M": 16, "BLOCK_N": 32}),
    (torch.float32, None, {"BLOCK_M": 16, "BLOCK_N": 16}),
    (torch.float16, 0.0, {"BLOCK_M": 16, "BLOCK_N": 64}),
)


@hidden("04/4")
def tile_attention(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield launched(function, *(normal(draw, 1, 2, 64, 32) for _ in "qkv"), 0.2, BLOCK_M=32, BLOCK_N=32)
    for dtype, level, blocks in (*CASES, (torch.float32, -100.0, {"BLOCK_M": 32, "BLOCK_N": 32})):
        M, N = int(draw.integers(1, 4)), int(draw.integers(1, 4)) + 3 * (level is None)
        q, k, v = operands(draw, blocks["BLOCK_M"] * M, blocks["BLOCK_N"] * N, 16, dtype, level)
        yield launched(function, q, k, v, 0.25, **blocks)
    q, k, v = operands(draw, 64, 128, 32)
    yield launched(function, q, k, v, float(draw.uniform(0.05, 0.5)))


def lengths(draw: np.random.Generator, number: int) -> tuple[int, int]:
    """Return Lq and Lk whose difference is at or near a multiple of 16, where the diagonal meets the edges of tiles.

    Every third case has fewer keys than queries, so that the first queries see no key.
    """
    fewer = int(draw.integers(2, 40))
    more = fewer + 16 * int(draw.integers(0, 3)) + (14, 15, 0, 1)[number % 4]
    return (more, fewer) if number % 3 == 1 else (fewer, more)


@hidden("04/5")
def causal_attention(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield launched(function, *(normal(draw, 1, 2, 64, 32) for _ in "qkv"), 0.2, BLOCK_M=32, BLOCK_N=32)
    for number, (dtype, level, blocks) in enumerate((*CASES, CASES[0], CASES[0])):
        Lq, Lk = lengths(draw, number) if level is not None else (int(draw.integers(20, 60)), 80)
        yield launched(function, *operands(draw, Lq, Lk, 16, dtype, level), 0.25, **blocks)
    L = int(draw.integers(40, 90))
    yield launched(function, *operands(draw, L, L, 32), float(draw.uniform(0.05, 0.5)), BLOCK_M=32)


@hidden("04/6")
def window_attention(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield launched(function, *(normal(draw, 1, 2, 64, 32) for _ in "qkv"), 20, 0.2, BLOCK_M=32, BLOCK_N=32)
    for number, (dtype, level, blocks) in enumerate((*CASES, CASES[0])):
        Lq, Lk = lengths(draw, number) if level is not None else (int(draw.integers(20, 60)), 80)
        yield launched(function, *operands(draw, Lq, Lk, 16, dtype, level), int(draw.integers(1, Lk)), 0.25, **blocks)
    for edge, more in (
        (-2, 14),
        (-1, 15),
        (0, 14),
        (1, 0),
    ):  # where the diagonal and the first edge meet the edges of tiles
        Lq = int(draw.integers(17, 33))
        Lk = Lq + 48 + more
        window = 33 + (Lk - Lq + edge) % 16
        yield launched(function, *operands(draw, Lq, Lk, 16), window, 0.25, BLOCK_M=16, BLOCK_N=16)
    yield launched(function, *operands(draw, 30, 50, 16), 1, 0.25, BLOCK_M=16, BLOCK_N=16)
