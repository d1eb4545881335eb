"""Copy an answer's arguments (NumPy arrays, PyTorch tensors, lists of these) and tell which of them it changed."""

from __future__ import annotations

import copy

import numpy as np
import torch

from labs_helpers.course.verdict.wrong import Wrong

WRITTEN = (
    "x += …, x[…] = …, out=x, MPI.IN_PLACE and methods that end in _ write into the argument of the function; "
    "write into a new array or tensor"
)
ENTRIES = "x[i] = …, append, pop and sort change the list that the function got; build a new list"


def copied(value):
    """Return a copy of `value`. A NumPy array keeps its strides, unlike in copy.deepcopy, so that it stays
    non-contiguous; the gaps contain NaN or −1."""
    if not isinstance(value, np.ndarray) or not value.size:
        return copy.deepcopy(value)
    ends = [(n - 1) * stride for n, stride in zip(value.shape, value.strides, strict=True)]
    before, after = -sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
    room = np.full(before + after + value.itemsize, 0xFF, np.uint8)
    made = np.ndarray(value.shape, value.dtype, room, before, value.strides)
    made[...] = value
    return made


def what_changed(name: str, before, now, entries: list | None = None) -> str:
    """Return in words how `now`, called `name`, differs from `before`; '' if it does not.

    entries: the original objects of a list, to tell a replaced object from a changed one.
    """
    if isinstance(before, list):
        if len(before) != len(now):
            return f"the list {name} had {len(before)} entries and has {len(now)} now"
        for i, (old, new) in enumerate(zip(before, now, strict=True)):
            if entries is not None and entries[i] is not new:
                return f"the list {name} has a different object at index {i} now"
            if said := what_changed(f"{name}[{i}]", old, new):
                return said
    elif isinstance(before, np.ndarray | torch.Tensor):
        if now.shape != before.shape:
            return f"{name} must stay unchanged: its shape was {tuple(before.shape)} and is {tuple(now.shape)} now"
        old, new = np.asarray(before), np.asarray(now)
        off = np.argwhere(~((old == new) | ((old != old) & (new != new))))
        if len(off):
            at = tuple(map(int, off[0]))
            where = f"{name}{list(at)}" if at else name
            return f"{name} must stay unchanged: {where} was {old[at]:.7g} and is {new[at]:.7g} now"
    return ""


def expect_kept(case: str, rank: int, names, before, now, entries) -> None:
    """Raise Wrong if a rank changed one of the first arguments, called `names`; the others are as in `what_changed`."""
    for name, *values in zip(names, before, now, entries, strict=False):
        if said := what_changed(name, *values):
            raise Wrong(case, f"rank {rank}: {said}", cause=ENTRIES if said.startswith("the list") else WRITTEN)
