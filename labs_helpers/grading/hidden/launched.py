"""Arguments of kernels, laid out in memory as a student's own would never be, and a call that is watched."""

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
    """[what the function gives; the dtypes of that; how many elements beside its results it overwrote; digests of the
    tensors that it was given, as they are afterwards; of an answer in another process what it did beside its kernels].

    Its results are made of NaN, so that what is never written shows. StrayAccess for a kernel that reads or writes
    outside of its tensors.
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
    """What `launched` says of an exact copy, with its shape and digest in its place, which take less room."""
    return [list(found[0].shape), digest(found[0]), *found[1:]]


def digest(tensor: torch.Tensor) -> str:
    """Of its elements, NaN included: whether it was changed, in few letters."""
    content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


def laid(draw: np.random.Generator, x: torch.Tensor) -> torch.Tensor:
    """The same values with strides that are drawn: of a slice, of every other column, or of a transposed matrix."""
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
    """Whole numbers from low to high. Their products are exact in a float32 accumulator, whatever the order, and so a
    result that is rounded once has no tolerance: see `exactly`."""
    return torch.from_numpy(draw.integers(low, high + 1, shape)).to(dtype)


def exactly(result: Any) -> Any:
    """A result of whole numbers as integers, which are compared without a tolerance."""
    whole = isinstance(result, torch.Tensor) and bool(result.isfinite().all())
    return result.to(torch.int64) if whole else result
