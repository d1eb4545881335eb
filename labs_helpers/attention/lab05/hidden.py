"""Hidden inputs of lab 05."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labs_helpers.course.verdict import one_thread, surrounded
from labs_helpers.grading.hidden import hidden, normal

BLOCKS = (16, 32, 64)


@hidden("05/1")
def attention_function(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for causal in (False, True, True):
        Lq, B, H, D = (int(n) for n in draw.integers((2, 1, 1, 2), (9, 4, 4, 7)))
        q, k, v, do = _operands(draw, B, H, Lq, Lq + int(draw.integers(0, 5)), D, torch.float64)
        operands = [x.requires_grad_() for x in (q, k, v)]
        with one_thread():
            out = function(*operands, causal)
            yield [out, *torch.autograd.grad(out, operands, do)]


@hidden("05/2")
def query_gradient(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for given in _kernel_cases(draw):
        with one_thread():  # with small products, several threads mostly wait for each other
            yield function(**given)


@hidden("05/3")
def key_value_gradients(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for given in _kernel_cases(draw):
        with one_thread():  # with small products, several threads mostly wait for each other
            yield function(**given)


@hidden("05/4")
def dq_conflicts(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for number in range(24):
        Lq, Lk = (int(n) for n in draw.integers(1, 700, 2))
        BLOCK_M, BLOCK_N = (int(n) for n in draw.choice((16, 32, 64, 128), 2))
        yield np.asarray(function(Lq, Lk, BLOCK_M, BLOCK_N, number % 3 > 0), np.float64)


@hidden("05/5")
def softcap_gradients(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    q, k, v, do = _operands(draw, 2, 2, *_lengths(draw, 2, 9), 3, torch.float64)
    scale, cap = float(draw.uniform(0.3, 0.8)), float(draw.uniform(1.0, 3.0))
    o, lse = _forward(q, k, v, scale, cap)
    yield function(q, k, v, o, lse, do, scale, cap)
    for dtype, D in ((torch.float32, 32), (torch.float16, 16)):
        q, k, v, do = (_between_nan(x) for x in _operands(draw, 1, 2, *_lengths(draw, 17, 60), D, dtype))
        scale, cap = float(draw.uniform(0.2, 0.4)), float(draw.uniform(1.0, 4.0))
        o, lse = _forward(q, k, v, scale, cap)
        given = q, k, v, _between_nan(o), _between_nan(lse), do
        with one_thread():
            yield function(*given, scale, cap, *map(int, draw.choice(BLOCKS, 2)))


def _kernel_cases(draw: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield arguments for exercises 2 and 3, with more queries than keys, so that some see none, and with fewer."""
    for dtype, D, causal, turned in (
        (torch.float32, 16, False, None),
        (torch.float32, 32, False, False),
        (torch.float32, 16, True, True),
        (torch.float16, 16, True, False),
    ):
        Lq, Lk = (64, 64) if turned is None else sorted(_lengths(draw, 17, 75), reverse=turned)
        q, k, v, do = (_between_nan(x) for x in _operands(draw, 1, 2, Lq, Lk, D, dtype))
        scale = float(draw.uniform(0.2, 0.4))
        o, lse = _forward(q, k, v, scale, causal=causal)
        delta = (o.to(dtype).double() * do.double()).sum(-1).float()
        BLOCK_M, BLOCK_N = (int(n) for n in draw.choice(BLOCKS, 2))
        yield {"q": q, "k": k, "v": v, "do": do, "lse": _between_nan(lse), "delta": _between_nan(delta),
               "scale": scale, "causal": causal, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N}  # fmt: skip


def _lengths(draw: np.random.Generator, least: int, most: int) -> tuple[int, int]:
    Lq, Lk = draw.choice(np.arange(least, most), 2, replace=False)
    return int(Lq), int(Lk)


def _operands(draw: np.random.Generator, B: int, H: int, Lq: int, Lk: int, D: int, dtype: torch.dtype) -> list[Tensor]:
    """Return [q, k, v, do]."""
    return [normal(draw, B, H, length, D, dtype=dtype) for length in (Lq, Lk, Lk, Lq)]


def _forward(
    q: Tensor, k: Tensor, v: Tensor, scale: float, cap: float | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Compute (o, lse) in float64; return o in the operands' dtype, and lse in float64 for float64, else in float32.

    A query that sees no key has o = 0 and lse = −∞.
    """
    s = scale * q.double() @ k.double().mT
    if cap is not None:
        s = cap * torch.tanh(s / cap)
    if causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(s.shape[-1] - s.shape[-2]), -torch.inf)
    lse = s.logsumexp(-1)
    p = torch.where(s > -torch.inf, torch.exp(s - lse[..., None]), 0.0)
    return (p @ v.double()).to(q.dtype), lse if q.dtype == torch.float64 else lse.float()


def _between_nan(x: Tensor) -> Tensor:
    """Return a contiguous copy with NaN before and after it in memory, so that stray loads show in the result."""
    return surrounded(x.flatten()).view(x.shape)
