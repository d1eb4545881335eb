"""Collectives that torch.compile has in its graphs, so that a block of layers is one graph with its communication.

PyTorch's functional collectives return new tensors, and inductor lets them write in place where it sees that it may.
name: a process group's `group_name`. x: any strides. Nothing is counted: a graph changes no Python object.
"""

from __future__ import annotations

import torch
from torch import Tensor

_functional = torch.ops._c10d_functional


def all_reduce(x: Tensor, op: str, name: str) -> Tensor:
    """The sum (op="sum") or the largest (op="max") of all ranks' x."""
    result: Tensor = _functional.wait_tensor(_functional.all_reduce(x.contiguous(), op, name))
    return result


def all_gather(x: Tensor, dim: int, size: int, name: str) -> Tensor:
    """All ranks' x behind one another along `dim`."""
    parts: Tensor = _functional.wait_tensor(_functional.all_gather_into_tensor(x.contiguous(), size, name))
    return parts if dim == 0 else torch.cat(parts.chunk(size), dim)


def reduce_scatter(x: Tensor, dim: int, size: int, name: str) -> Tensor:
    """This rank's part along `dim` of the sum of all ranks' x."""
    parts = x.contiguous() if dim == 0 else torch.cat(x.chunk(size, dim))
    mine: Tensor = _functional.wait_tensor(_functional.reduce_scatter_tensor(parts, "sum", size, name))
    return mine
