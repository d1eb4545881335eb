"""Real text that every machine has: the bytes of Python's standard library.

The bytes depend on the Python version (about 12 MB). Tests, site-packages and files generated for this machine are left
out.
"""

from __future__ import annotations

import functools
import sysconfig
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

Split = Literal["train", "validation"]
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idle_test"}


def in_validation(name: str) -> bool:
    """Return True if a file of this name ('json/decoder.py') belongs to the validation part, as one in ten does."""
    return zlib.crc32(name.encode()) % 10 == 0


@functools.cache
def text(split: Split) -> Tensor:
    """Return the files of one part, in the order of their names: (bytes,) of uint8, on the CPU.

    ValueError for another part; FileNotFoundError if the standard library has no .py files.
    """
    if split not in ("train", "validation"):
        raise ValueError(f"split is {split!r}; it may be 'train' or 'validation'")
    root = Path(sysconfig.get_paths()["stdlib"])
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    chosen = [
        (root / name).read_bytes()
        for name in names
        if not LEFT_OUT.intersection(name.split("/")) and "_sysconfigdata" not in name
        if in_validation(name) == (split == "validation")
    ]
    if not chosen:
        raise FileNotFoundError(f"no .py files of the standard library under {root}")
    return torch.frombuffer(bytearray(b"".join(chosen)), dtype=torch.uint8)


def batches(split: Split, batch: int, length: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield endless (x, y), (batch, length) of int64 on the CPU: bytes from random places, and the byte after each.

    The same seed gives the same batches. ValueError for a length that exceeds the text.
    """
    data, generator = _longer_than(length, text(split)), torch.Generator().manual_seed(seed)
    while True:
        yield _windows(data, torch.randint(len(data) - length, (batch,), generator=generator), length)


def validation_sample(windows: int, length: int) -> tuple[Tensor, Tensor]:
    """Return (x, y), (windows, length) of int64: windows spread evenly over the validation part, always the same.

    ValueError for a length that exceeds the text.
    """
    data = _longer_than(length, text("validation"))
    return _windows(data, torch.linspace(0, len(data) - length - 1, windows).long(), length)


def _longer_than(length: int, data: Tensor) -> Tensor:
    if length >= len(data):
        raise ValueError(f"length is {length:,}, but has to be less than the {len(data):,} bytes of the text")
    return data


def _windows(data: Tensor, starts: Tensor, length: int) -> tuple[Tensor, Tensor]:
    both = data[starts[:, None] + torch.arange(length + 1)].long()
    return both[:, :-1].contiguous(), both[:, 1:].contiguous()
