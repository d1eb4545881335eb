"""Compare answers that are dicts of tensors, whose inputs a case describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case

Tensors = dict[str, torch.Tensor]
ERROR = 1e-6  # float64 in any order is off by far less; float32 is not asked for, but passes


def expect_tensor(name: str, found: Any, shape: Sequence[int]) -> torch.Tensor:
    """Return `found` in float64; raise Wrong unless it is a tensor of this shape."""
    if not isinstance(found, torch.Tensor):
        cause = "a return is missing" if found is None else ""
        raise Wrong("", f"{name} is {found!r:.60}; return a tensor", cause=cause)
    if tuple(found.shape) != tuple(shape):
        raise Wrong("", str(tuple(found.shape)), str(tuple(shape)), where=f"the shape of {name}")
    return found.double()


def same(found: Tensors, other: Tensors) -> bool:
    """Tell whether two answers have equal tensors, up to rounding. NaN equals nothing but NaN."""
    return all(torch.allclose(found[name], other[name], rtol=ERROR, atol=ERROR, equal_nan=True) for name in other)


def told(case: Case, found: Tensors) -> tuple[str, str, str]:
    """Return the first wrong element, the right one, and where it is."""
    name = next(name for name in case.right if not same({name: found[name]}, {name: case.right[name]}))
    off = ~torch.isclose(found[name], case.right[name], rtol=ERROR, atol=ERROR)
    at = off.nonzero()[0].tolist()
    some = f" ({int(off.sum())} of {off.numel()} are off)"
    values = (f"{float(tensor[name][tuple(at)]):.6g}" for tensor in (found, case.right))
    return (*values, f"{name}, element {at}{some}")
