"""Copies of what an answer is given, and what it has changed of them: NumPy arrays, PyTorch tensors, lists of these."""

from __future__ import annotations

import copy

import numpy as np
import torch

from labs_helpers.course.verdict.wrong import Wrong

WRITTEN = (
    "x += …, x[…] = …, out=x, MPI.IN_PLACE and methods that end in _ write into what the function was given; write "
    "into something new"
)
ENTRIES = "x[i] = …, append, pop and sort change the list that the function was given; make one of its own"


def copied(value):
    """A copy of `value`; of a NumPy array with its strides, so that what is not contiguous stays so (copy.deepcopy
    closes the gaps). Between its elements lie NaN, or −1."""
    if not isinstance(value, np.ndarray) or not value.size:
        return copy.deepcopy(value)
    ends = [(n - 1) * stride for n, stride in zip(value.shape, value.strides, strict=True)]
    before, after = -sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
    room = np.full(before + after + value.itemsize, 0xFF, np.uint8)
    made = np.ndarray(value.shape, value.dtype, room, before, value.strides)
    made[...] = value
    return made


def what_changed(name: str, before, now, entries: list | None = None) -> str:
    """How `now`, called `name`, differs from what it was `before`, in words; '' where it does not.

    entries: of a list the objects that were in it: those of another one are not the old ones changed.
    """
    if isinstance(before, list):
        if len(before) != len(now):
            return f"the list {name} had {len(before)} entries, and has {len(now)} now"
        for i, (old, new) in enumerate(zip(before, now, strict=True)):
            if entries is not None and entries[i] is not new:
                return f"the list {name} has another object at {i} now"
            if said := what_changed(f"{name}[{i}]", old, new):
                return said
    elif isinstance(before, np.ndarray | torch.Tensor):
        if now.shape != before.shape:
            return f"{name}, which has to stay as it is, has shape {tuple(now.shape)} now; before {tuple(before.shape)}"
        old, new = np.asarray(before), np.asarray(now)
        off = np.argwhere(~((old == new) | ((old != old) & (new != new))))
        if len(off):
            at = tuple(map(int, off[0]))
            where = f"{name}{list(at)}" if at else name
            return f"{name} has to stay as it is: {where} was {old[at]:.7g}, and is {new[at]:.7g} now"
    return ""


def expect_kept(case: str, rank: int, names, before, now, entries) -> None:
    """Raise Wrong if a rank has changed one of the first arguments, called `names`; the rest as in `what_changed`."""
    for name, *values in zip(names, before, now, entries, strict=False):
        if said := what_changed(name, *values):
            raise Wrong(case, f"rank {rank}: {said}", cause=ENTRIES if said.startswith("the list") else WRITTEN)
