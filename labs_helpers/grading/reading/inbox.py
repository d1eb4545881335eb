"""Who handed in what: a folder or a zip of notebooks, named for students or in folders that are (senders.py)."""

from __future__ import annotations

import csv
import lzma
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath

from labs_helpers.grading.reading.notebook_file import MOST_BYTES
from labs_helpers.grading.reading.senders import Sender, ids, sender
from labs_helpers.grading.results.plain_text import named

MOST_FILES = 10_000
MOST_IN_ALL = 2**31  # bytes that a zip may unpack to
MOST_NAME = 200  # bytes of a folder's; file systems take 255
LATE = "Canvas calls it late"


class BadInbox(ValueError):
    """What is wrong with an inbox or a class list, in words for the instructor."""


@dataclass(frozen=True)
class HandedIn:
    """One student's file. at: when it was changed last. others: further files of the same student, not graded. flags:
    what is odd about whose it is."""

    student: str
    path: Path
    at: datetime
    others: tuple[Path, ...] = field(default=())
    flags: tuple[str, ...] = field(default=())


def students(inbox: Path, unpacked: Path, known: Mapping[str, str] | None = None) -> dict[str, HandedIn]:
    """Student → what is to be graded: of several files the newest. unpacked: a folder for what a zip holds. known: the
    class list, whose ids they get where it names them; otherwise an id is the name, with a number where two share it.
    """
    if inbox.is_file() and zipfile.is_zipfile(inbox):
        inbox = _unpack(inbox, unpacked)
    if not inbox.is_dir():
        raise BadInbox(f"{inbox} is neither a folder nor a zip")
    files: dict[Sender, list[Path]] = {}
    late = set[Path]()
    for path in sorted(inbox.rglob("*.ipynb")):
        place = path.relative_to(inbox)
        if any(_left_out(part) for part in place.parts) or not _regular(path):
            continue
        whose, is_late = sender(place.parts[0].removesuffix(".ipynb"))
        files.setdefault(Sender(named(whose.name), whose.number), []).append(path)
        late |= {path} if is_late else set()
    if not files:
        raise BadInbox(f"there is no notebook (.ipynb) in {inbox}")
    numbered: dict[str, list[Sender]] = {}
    for whose in files:
        numbered.setdefault(whose.name, []).extend([whose] if whose.number else [])
    for name, ones in numbered.items():
        if len(ones) == 1:  # what has the name alone was put beside the platform's by hand
            files[ones[0]] += files.pop(Sender(name), [])
    found = {}
    for whose, student, why in ids(files, known or {}):
        newest = max(files[whose], key=lambda path: (path.lstat().st_mtime, path))
        at = datetime.fromtimestamp(newest.lstat().st_mtime, UTC)
        others = tuple(path for path in files[whose] if path != newest)
        flags = tuple(filter(None, (why, LATE if newest in late else "")))
        found[student] = HandedIn(student, newest, at, others, flags)
    return found


def _left_out(part: str) -> bool:
    return part.startswith((".", "__MACOSX"))


def _regular(path: Path) -> bool:
    """A file or a link, of which the reader says that it is one; a folder called x.ipynb is no submission."""
    mode = path.lstat().st_mode
    return not stat.S_ISDIR(mode)


def _unpack(archive: Path, folder: Path) -> Path:
    """The notebooks of a zip, under names that stay inside the folder, with their times. One that cannot be unpacked is
    an empty file. What an earlier zip left in the folder is removed."""
    with zipfile.ZipFile(archive) as content:
        members = [member for member in content.infolist() if member.filename.endswith(".ipynb")]
        if len(members) > MOST_FILES or sum(member.file_size for member in members) > MOST_IN_ALL:
            raise BadInbox(f"{archive} holds more than {MOST_FILES:,} notebooks, or {MOST_IN_ALL >> 20:,} MB of them")
        shutil.rmtree(folder, ignore_errors=True)
        for member in members:
            parts = [part for part in PurePosixPath(member.filename).parts if part not in ("/", "..", ".")]
            if not parts or any(_left_out(part) for part in parts):
                continue
            # Members may be called as others' folders are, or by names that are too long for a file.
            student = parts[0].removesuffix(".ipynb").encode()
            if len(student) > MOST_NAME:
                student = student[:MOST_NAME] + b"=" + sha256(student).hexdigest()[:16].encode()
            target = (
                folder / student.decode(errors="ignore") / f"{sha256(member.filename.encode()).hexdigest()[:16]}.ipynb"
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_content(content, member))
            at = _time(member)
            os.utime(target, (at, at))
    return folder


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """One byte more than is read as a notebook; nothing where it is encrypted or damaged."""
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


def class_list(path: Path) -> dict[str, str]:
    """id → name, of a CSV with the columns id and name. BadInbox says what it lacks."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        columns = [name.strip().lower() for name in rows.fieldnames or ()]
        if "id" not in columns:
            raise BadInbox(f"{path} has the columns {', '.join(columns) or 'none'}; one called id is needed")
        found: dict[str, str] = {}
        for row in rows:
            known = {str(key).strip().lower(): (value or "").strip() for key, value in row.items() if key}
            if not known["id"]:
                raise BadInbox(f"{path}, line {rows.line_num}: the id is empty")
            student = named(known["id"])
            if student in found:
                raise BadInbox(f"{path}, line {rows.line_num}: {student} stands there twice")
            found[student] = " ".join(known.get("name", "").split())
    return found


def unknown(handed_in: Iterable[str], known: Iterable[str]) -> list[str]:
    """Those who handed in but are not in the class."""
    return sorted(set(handed_in) - set(known))
