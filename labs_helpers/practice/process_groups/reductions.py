"""Reduce over ranks, in rank order and in the tensors' dtype: ((rank 0 + rank 1) + rank 2) + …

gloo's ring starts each part of a tensor at another rank. For two ranks and for exact sums the result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_OPERATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "SUM": torch.add,
    "AVG": torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}


def operation_name(op: Any, dtype: torch.dtype) -> str:
    """Return 'SUM' for dist.ReduceOp.SUM. RuntimeError, in gloo's words, if gloo lacks the operation for this dtype."""
    name = next((name for name in _OPERATIONS if op == getattr(dist.ReduceOp, name)), "")
    if not name:
        raise RuntimeError(f"practice ranks reduce with {', '.join(_OPERATIONS)}, not {op}")
    if name == "AVG" and not dtype.is_floating_point:
        raise RuntimeError(f"AVG: result type Float can't be cast to the desired output type {dtype}")
    if name.startswith("B") and dtype.is_floating_point:
        raise RuntimeError(f"Cannot use ReduceOp.{name} with non-integral dtype {dtype}")
    return name


def reduced(name: str, brought: Sequence[Tensor]) -> Tensor:
    total = reduce(_OPERATIONS[name], brought)
    return total / len(brought) if name == "AVG" else total
