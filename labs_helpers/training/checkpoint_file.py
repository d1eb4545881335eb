"""One checkpoint in one file, the same for every layout: whole arrays by name, and what is to be known about them.

    tile-to-cluster checkpoint 1
    {"step": 40, "losses": […], "arrays": [["model/norm.weight", "<f8", [64]], …], …}      one line of JSON, and spaces
    the arrays' bytes, one after the other
    SHA-256 of all that comes before, 32 bytes

It is written under another name, brought to the disk, and then renamed. So under its own name it is whole or not there,
at whichever byte the writer was ended.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
MAGIC = b"tile-to-cluster checkpoint 1\n"
ALIGNMENT = 64  # where arrays begin, so that arrays of one dtype can be worked with where they lie
DIGEST = hashlib.sha256().digest_size
UNFINISHED = ".part"


class Damaged(ValueError):
    """A file that is not what was written. The message names it."""


class Checkpoint(NamedTuple):
    about: dict[str, Any]
    arrays: dict[str, Array]  # not to be written to


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Writes the file, all of it or nothing. about: what JSON knows. OSError, as when the disk is full: then `path` is
    what it was."""
    unfinished = path.with_name(path.name + UNFINISHED)
    try:
        with open(unfinished, "wb", buffering=0) as file:
            for piece in _pieces(about, arrays):
                rest = memoryview(piece).cast("B")
                while len(rest):
                    rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink()  # what a full disk needs most is room
        raise
    _to_disk(path.parent)


def read(path: Path) -> Checkpoint:
    """The checkpoint, whose arrays lie in the file until they are looked at. Damaged: cut off, changed, or another
    file. FileNotFoundError."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise Damaged(f"{path} is empty")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    content = memoryview(mapped)
    if content[: len(MAGIC)] != MAGIC[:size]:
        raise Damaged(f"{path} is no checkpoint")
    whole = hashlib.sha256(content[:-DIGEST]).digest()
    if size < len(MAGIC) + DIGEST or content[-DIGEST:] != whole:
        raise Damaged(f"{path} is damaged: its {size} bytes are not those that were written")
    end = mapped.find(b"\n", len(MAGIC))
    about = json.loads(mapped[len(MAGIC) : end])
    arrays, at = {}, end + 1
    for name, kind, shape in about.pop("arrays"):
        arrays[name] = np.frombuffer(content, np.dtype(kind), math.prod(shape), at).reshape(shape)
        at += arrays[name].nbytes
    return Checkpoint(about, arrays)


def _pieces(about: Mapping[str, Any], arrays: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    index = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    digest = hashlib.sha256()
    header = json.dumps({**about, "arrays": index}).encode()
    header += b" " * (-(len(MAGIC) + len(header) + 1) % ALIGNMENT) + b"\n"
    for array in (MAGIC, header, *arrays.values()):
        piece = array if isinstance(array, bytes) else np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        digest.update(piece)
        yield piece
    yield digest.digest()


def _to_disk(folder: Path) -> None:
    """The new name, too, outlives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
