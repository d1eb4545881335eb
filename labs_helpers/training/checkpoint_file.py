"""One checkpoint in one file, the same for every layout: whole arrays by name, and a header that describes them.

    tile-to-cluster checkpoint 1
    {"step": 40, "losses": […], "arrays": [["model/norm.weight", "<f8", [64]], …], …}    one line of JSON, then spaces
    the arrays' bytes, one after the other
    SHA-256 of all preceding bytes, 32 bytes

The writer uses a temporary name, flushes the file to disk, and then renames it. So a file under the final name is
complete, no matter when the writer was killed.
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
ALIGNMENT = 64  # of the first array, so that NumPy can use the mapped arrays in place
DIGEST = hashlib.sha256().digest_size
UNFINISHED = ".part"


class Damaged(ValueError):
    """Raised for a file that differs from the one written. The message names it."""


class Checkpoint(NamedTuple):
    about: dict[str, Any]
    arrays: dict[str, Array]  # read-only


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write the file completely or not at all. about: JSON values.

    Raises OSError, for instance if the disk is full; `path` is then unchanged.
    """
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
            unfinished.unlink()  # free the space on a full disk
        raise
    _to_disk(path.parent)


def read(path: Path) -> Checkpoint:
    """Read a checkpoint; its arrays are mapped from the file and load on first use.

    Raises Damaged for a file that is truncated, changed or no checkpoint, and FileNotFoundError.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise Damaged(f"{path} is empty")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    content = memoryview(mapped)
    if content[: len(MAGIC)] != MAGIC[:size]:
        raise Damaged(f"{path} is not a checkpoint")
    whole = hashlib.sha256(content[:-DIGEST]).digest()
    if size < len(MAGIC) + DIGEST or content[-DIGEST:] != whole:
        raise Damaged(f"{path} is damaged: its {size} bytes differ from those written")
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
    """Flush a folder, so that a new file name survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
