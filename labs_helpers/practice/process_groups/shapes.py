"""Check which shapes fit together, and report mismatches by what the caller passed; gloo reports positions in a
list."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def expect_joined(name: str, whole: Tensor, whole_is: str, part: Tensor, part_is: str, ranks: int) -> None:
    """Raise RuntimeError unless `whole` is `ranks` of `part` one after another along the first dimension, of one
    dtype."""
    _expect_dtype(name, whole, whole_is, part, part_is)
    joined = (ranks * part.shape[0], *part.shape[1:]) if part.ndim else (ranks,)
    if tuple(whole.shape) != joined:
        raise RuntimeError(
            f"{name}: {whole_is} has shape {tuple(whole.shape)}; {ranks} ranks × {part_is} {tuple(part.shape)}, one "
            f"after another along the first dimension, have {joined}"
        )


def expect_list(name: str, tensors: Sequence[Tensor], part: Tensor, ranks: int) -> None:
    """Raise RuntimeError unless there is a tensor like `part` for each rank."""
    if len(tensors) != ranks:
        raise RuntimeError(f"{name}: the list has {len(tensors)} tensors, the group {ranks} ranks")
    for i, x in enumerate(tensors):
        _expect_dtype(name, x, f"tensor {i} of the list", part, "the other")
        if x.shape != part.shape:
            shapes = f"{tuple(x.shape)}, the tensor beside the list {tuple(part.shape)}"
            raise RuntimeError(f"{name}: tensor {i} of the list has shape {shapes}; gloo takes one shape")


def _expect_dtype(name: str, x: Tensor, x_is: str, y: Tensor, y_is: str) -> None:
    if x.dtype != y.dtype:
        raise RuntimeError(f"{name}: {x_is} is {x.dtype}, {y_is} {y.dtype}; they have to be the same")
