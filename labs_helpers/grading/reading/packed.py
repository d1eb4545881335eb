"""List the files of an inbox, which is a folder or a zip, each with its name there and the path of its content."""

from __future__ import annotations

import lzma
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath

from labs_helpers.grading.reading.notebook_file import MOST_BYTES

MOST_FILES = 10_000
MOST_IN_ALL = 2**31  # bytes that a zip may unpack to
_NOBODYS = ("Thumbs.db", "desktop.ini")


class BadInbox(ValueError):
    """An inbox or an instructor's table is wrong; the message tells the instructor what."""


@dataclass(frozen=True)
class Found:
    """A file of the inbox. place: its name there. path: of its content; a zip's file that is no notebook has none.
    at: its last change, in seconds since 1970."""

    place: PurePosixPath
    path: Path
    at: float

    @property
    def is_notebook(self) -> bool:
        return self.place.name.endswith(".ipynb")


def files(inbox: Path, unpacked: Path) -> list[Found]:
    """Return all files except hidden ones, sorted. unpacked: a folder for the notebooks of a zip. Raises BadInbox."""
    if inbox.is_file() and zipfile.is_zipfile(inbox):
        found = list(_of_zip(inbox, unpacked))
    elif inbox.is_dir():
        paths = [path for path in inbox.rglob("*") if not stat.S_ISDIR(path.lstat().st_mode)]
        found = [Found(PurePosixPath(path.relative_to(inbox)), path, path.lstat().st_mtime) for path in paths]
    else:
        raise BadInbox(f"{inbox} is neither a folder nor a zip")
    return sorted((one for one in found if not _left_out(one.place)), key=lambda one: one.place)


def _left_out(place: PurePosixPath) -> bool:
    return any(part.startswith((".", "__MACOSX")) or part in _NOBODYS for part in place.parts)


def _of_zip(archive: Path, folder: Path) -> Iterator[Found]:
    """Return a zip's notebooks, under names that stay inside the folder. One that cannot be unpacked becomes an
    empty file. Anything that an earlier zip left in the folder is removed."""
    with zipfile.ZipFile(archive) as content:
        members = [member for member in content.infolist() if not member.is_dir()]
        size = sum(member.file_size for member in members if member.filename.endswith(".ipynb"))
        if len(members) > MOST_FILES or size > MOST_IN_ALL:
            raise BadInbox(f"{archive} holds more than {MOST_FILES:,} files, or {MOST_IN_ALL >> 20:,} MB of notebooks")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for member in members:
            parts = [part for part in PurePosixPath(member.filename).parts if part not in ("/", "..", ".")]
            if not parts:
                continue
            # Members may be called by names that are too long for a file, or as another's folder is.
            path = folder / f"{sha256(member.filename.encode()).hexdigest()[:16]}.ipynb"
            one = Found(PurePosixPath(*parts), path, _time(member))
            if one.is_notebook:
                path.write_bytes(_content(content, member))
                os.utime(path, (one.at, one.at))
            yield one


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return at most one byte more than is read as a notebook; nothing if the member is encrypted or damaged."""
    try:
        with archive.open(member) as source:
            return source.read(MOST_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, EOFError, OSError):
        return b""


def _time(member: zipfile.ZipInfo) -> float:
    try:
        return datetime(*member.date_time).timestamp()
    except ValueError:  # there is no month 0
        return 0.0
