"""Surround inputs with NaN and outputs with canaries, so that an access past an edge shows in the result.

The values alone do not reveal a missing mask: the memory after a row's end is usually the next row, whose values are
valid, finite, and often multiplied by zero. Between NaNs the access shows.
"""

from __future__ import annotations

from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode

MARGIN = 16
CANARY = -12345.0


def surrounded(tensor: torch.Tensor, margin: int = MARGIN) -> torch.Tensor:
    """Return the same values as a view into a larger buffer whose other elements are NaN.

    The rows become non-contiguous, as in a slice of a larger matrix. Floating dtypes, 1-D or more; each dimension gains
    `margin` elements on both sides.
    """
    if not tensor.is_floating_point():
        raise TypeError(f"surrounded: NaN needs a floating dtype, not {tensor.dtype}")
    buffer = torch.full([n + 2 * margin for n in tensor.shape], float("nan"), dtype=tensor.dtype, device=tensor.device)
    view = buffer[tuple(slice(margin, margin + n) for n in tensor.shape)]
    view.copy_(tensor)
    return view


class Guarded(TorchFunctionMode):
    """Inside the block, each new floating tensor is filled with NaN and placed between canaries; see `intact`."""

    FACTORIES = {
        torch.empty,
        torch.empty_like,
        torch.Tensor.new_empty,
        torch.zeros,
        torch.zeros_like,
        torch.Tensor.new_zeros,
    }
    UNWRITTEN = {torch.empty, torch.empty_like, torch.Tensor.new_empty}

    def __init__(self):
        super().__init__()
        self.buffers: list[tuple[torch.Tensor, int, int]] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function not in self.FACTORIES or not result.is_floating_point():
            return result
        span = result.numel()
        # 64 elements keep the 16-byte alignment that a plain allocation has.
        buffer = torch.full((span + 128,), CANARY, dtype=result.dtype, device=result.device)
        self.buffers.append((buffer, 64, span))
        buffer[64 : 64 + span].fill_(float("nan") if function in self.UNWRITTEN else 0.0)
        return buffer.as_strided(result.shape, result.stride(), 64)

    def overwritten(self) -> int:
        """Return the number of overwritten canaries, that is, of stores outside an output."""
        return sum(
            int((side != torch.tensor(CANARY, dtype=side.dtype)).sum())
            for buffer, start, span in self.buffers
            for side in (buffer[:start].cpu(), buffer[start + span :].cpu())
        )


@contextmanager
def guarded_outputs():
    """Return the context for a call that allocates its outputs: `with guarded_outputs() as guard:`."""
    with Guarded() as guard:
        yield guard
