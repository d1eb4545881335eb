"""Find each student's notebook in an inbox, whose files or folders are named after students (senders.py)."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile
from os.path import commonprefix
from pathlib import Path, PurePosixPath

from labs_helpers.grading.reading.packed import BadInbox, Found, files
from labs_helpers.grading.reading.senders import Sender, from_platform, ids, sender
from labs_helpers.grading.results.plain_text import named, plain
from labs_helpers.labs import NOTEBOOKS

LATE = "Canvas calls it late"
MOST_NAMES = 5  # of a student's files that are listed


@dataclass(frozen=True)
class HandedIn:
    """One student's file. at: the time of its last change. others: further notebooks of the same student, which are
    not graded. flags: doubts about whose it is. instead: if there is no notebook, the names of the files that there
    are; else ''."""

    student: str
    path: Path
    at: datetime
    others: tuple[Path, ...] = field(default=())
    flags: tuple[str, ...] = field(default=())
    instead: str = ""


def students(inbox: Path, unpacked: Path, known: Mapping[str, str] | None = None) -> dict[str, HandedIn]:
    """Return student → the file to grade, the newest of several notebooks.

    unpacked: a folder for a zip's contents. known: the class list. Students it names get its ids; otherwise the name is
    the id, with a number if two share it. Raises BadInbox.
    """
    if NOTEBOOKS.is_relative_to(inbox.resolve()) or inbox.resolve().is_relative_to(NOTEBOOKS):
        raise BadInbox(f"{inbox} holds the course itself, and not what students handed in")
    known = known or {}
    there = _of_students(files(inbox, unpacked), known)
    if not any(one.is_notebook for one in there):
        raise BadInbox(f"there is no notebook (.ipynb) in {inbox}")
    theirs: dict[Sender, list[Found]] = {}
    late = set[Path]()
    for one in there:
        if len(one.place.parts) == 1 and one.place.suffix == ".csv":  # the class list, or a platform's table
            continue
        whose, is_late = _sender(one.place, known)
        theirs.setdefault(Sender(named(whose.name), whose.number), []).append(one)
        late |= {one.path} if is_late else set()
    numbered: dict[str, list[Sender]] = {}
    for whose in theirs:
        numbered.setdefault(whose.name, []).extend([whose] if whose.number else [])
    for name, ones in numbered.items():
        if len(ones) == 1:  # what has the name alone was put beside the platform's by hand
            theirs[ones[0]] += theirs.pop(Sender(name), [])
    found = {}
    for whose, student, why in ids(theirs, known):
        given = _handed_in(student, theirs[whose])
        flags = (why, *given.flags, LATE if given.path in late else "")
        found[student] = replace(given, flags=tuple(filter(None, flags)))
    return found


def _sender(place: PurePosixPath, known: Collection[str]) -> tuple[Sender, bool]:
    first = place.parts[0]
    is_other = len(place.parts) == 1 and not first.endswith(".ipynb")
    return sender(place.stem if is_other else first.removesuffix(".ipynb"), known)


def _of_students(there: list[Found], known: Collection[str]) -> list[Found]:
    """Return the files below folders that hold all notebooks and belong to no student."""

    def nobodys(folder: str) -> bool:
        return not from_platform(folder) and named(sender(folder, known)[0].name) not in known

    notebooks = [one.place for one in there if one.is_notebook]
    common = commonprefix([place.parts[:-1] for place in notebooks]) if len(notebooks) > 1 else ()
    if above := tuple(takewhile(nobodys, common)):
        print(
            f"all notebooks are in {plain('/'.join(above))}/: the names in it are taken for those of students",
            file=sys.stderr,
        )
        inside = [one for one in there if one.place.parts[: len(above)] == above]
        return [replace(one, place=one.place.relative_to(*above)) for one in inside]
    return there


def _handed_in(student: str, there: Sequence[Found]) -> HandedIn:
    """Return the newest notebook, or else the newest file, and name the others in flags."""
    notebooks = [one for one in there if one.is_notebook]
    newest, *others = sorted(notebooks or there, key=lambda one: (one.at, one.path), reverse=True)
    at = datetime.fromtimestamp(newest.at, UTC)
    beside = [str(one.place) for one in there if not one.is_notebook]
    if not notebooks:
        return HandedIn(student, newest.path, at, instead=_listed(beside))
    flags = [f"graded is {newest.place}, and not {_listed([str(one.place) for one in others])}"] if others else []
    flags += [f"no notebook, and not read: {_listed(beside)}"] if beside else []
    return HandedIn(student, newest.path, at, tuple(one.path for one in others), tuple(flags))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(map(plain, names[:MOST_NAMES])) + (f" and {more} more" if more > 0 else "")
