"""Check the tensors that an answer returns and the other tensors into which its kernel stores."""

from __future__ import annotations

import torch

from labs_helpers.course.verdict import Run, Wrong, expect_tuple


def expect_parts(case: str, answer, parts: dict) -> tuple[torch.Tensor, ...]:
    """Return the answer's tensors, one for each of `parts`, name → (shape, dtype or None).

    Raises Wrong for a wrong number, type, shape or dtype, and distinguishes a wrong order from a wrong shape.
    """
    values = expect_tuple(case, answer, *parts)
    for name, x in zip(parts, values, strict=True):
        if not isinstance(x, torch.Tensor):
            raise Wrong(case, f"{name} is {type(x).__name__}; return a tensor")
    shapes, asked = [tuple(x.shape) for x in values], [tuple(shape) for shape, _ in parts.values()]
    for name, x, (shape, dtype) in zip(parts, values, parts.values(), strict=True):
        if tuple(x.shape) != tuple(shape):
            order = f"the order is wrong; return ({', '.join(parts)})" if sorted(shapes) == sorted(asked) else ""
            raise Wrong(case, f"{name} is {tuple(x.shape)}, expected {tuple(shape)}", cause=order)
        if dtype not in (None, x.dtype):
            raise Wrong(case, f"{name} is {x.dtype}, expected {dtype}")
    return values


def expect_nothing_beside(run: Run, known, why: str) -> None:
    """Raise Wrong if the kernel stores into a tensor that is not in `known`, its inputs and outputs."""
    storages = {tensor.untyped_storage().data_ptr() for tensor in known}
    for launch in run.launches:
        for name, tensor in launch.tensors().items():
            if tensor.untyped_storage().data_ptr() in storages:
                continue
            if stored := int(run.meter.of(tensor).stores.sum()):
                shape = "×".join(map(str, tensor.shape))
                raise Wrong(
                    run.case,
                    f"the kernel stores {stored:,} elements to {name}, a tensor of {shape} that is not a result.",
                    cause=f"an intermediate result goes through memory; {why}",
                )
