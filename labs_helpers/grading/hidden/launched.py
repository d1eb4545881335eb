"""Place kernels' arguments in memory in unusual ways, and watch a call that launches kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from labs_helpers.course.meter import metered
from labs_helpers.course.verdict.surroundings import guarded_outputs


def launched(function: Callable[..., Any], *arguments: Any, **named: Any) -> list[Any]:
    """Call the function. Return [its result; the result's dtypes; how many elements outside its results it overwrote;
    digests of its tensor arguments after the call; the bytes that an answer in another process computed outside its
    kernels].

    Result memory starts as NaN, so that unwritten elements show. Raises StrayAccess if a kernel reads or writes outside
    its tensors.
    """
    alone = getattr(function, "kernels_alone", lambda: nullcontext([]))
    # As a GPU, which warns of no overflow.
    with np.errstate(all="ignore"), guarded_outputs() as guard, metered(), alone() as beside:
        found = function(*arguments, **named)
    parts = found if isinstance(found, list | tuple) else [found]
    return [
        found,
        [str(getattr(part, "dtype", type(part).__name__)) for part in parts],
        guard.overwritten(),
        [digest(given) for given in arguments if isinstance(given, torch.Tensor)],
        beside,
    ]


def copied(found: list[Any]) -> list[Any]:
    """Replace the result in a list of `launched` by its shape and digest, which are shorter. For exact copies."""
    return [list(found[0].shape), digest(found[0]), *found[1:]]


def digest(tensor: torch.Tensor) -> str:
    """Return a short hash of a tensor's bytes, NaN included: it tells whether the tensor was changed."""
    content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


def laid(draw: np.random.Generator, x: torch.Tensor) -> torch.Tensor:
    """Return the same values in memory with random strides: a slice, every other column, or a transposed matrix."""
    ways = (_slice, _every_other, lambda x: _slice(x.mT).mT)
    return ways[draw.integers(len(ways))](x)


def _slice(x: torch.Tensor) -> torch.Tensor:
    buffer = x.new_full((*x.shape[:-1], x.shape[-1] + 9), torch.nan)
    buffer[..., 4:-5] = x
    return buffer[..., 4:-5]


def _every_other(x: torch.Tensor) -> torch.Tensor:
    buffer = x.new_full((*x.shape[:-1], 2 * x.shape[-1] + 1), torch.nan)
    buffer[..., 1::2] = x
    return buffer[..., 1::2]


def between(
    draw: np.random.Generator, low: int, high: int, *shape: int, dtype: torch.dtype = torch.float16
) -> torch.Tensor:
    """Draw whole numbers from low to high. A float32 accumulator adds their products exactly in any order, so a result
    that is rounded once needs no tolerance: see `exactly`."""
    return torch.from_numpy(draw.integers(low, high + 1, shape)).to(dtype)


def exactly(result: Any) -> Any:
    """Convert a result of whole numbers to integers, which are compared without tolerance."""
    whole = isinstance(result, torch.Tensor) and bool(result.isfinite().all())
    return result.to(torch.int64) if whole else result
