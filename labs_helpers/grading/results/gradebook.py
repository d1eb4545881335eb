"""Keep one record per student, and build the tables of all records. Each file is complete at any moment."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from labs_helpers.grading.marks import Mark
from labs_helpers.grading.results.plain_text import number, plain

GRADED, LATE, REVIEW, MISSING = "graded", "late", "review", "missing"
UNREADABLE, ERROR, WAITING = "unreadable", "grader-error", "not graded yet"
OVERRIDE = "override"  # status of a mark whose points the instructor set
UNKNOWN = "not in the class"  # flag of a student
MOST_NAME = 200  # bytes of a file's name: file systems take 255, and an ending and the file beside it need some
MOST_TEXT = 4_000  # characters in a cell of a table
_FORMULA = re.compile(r"[\s']*[=+\-@＝＋－＠]")  # with ', so that no two ids collide
STATUSES = (GRADED, LATE, REVIEW, MISSING, UNREADABLE, ERROR, WAITING)


@dataclass(frozen=True)
class Record:
    """One student's result.

    digest: of the file that was graded. late_days: days begun after the due time. reason: why there is no result, or
    the error. accepted: exercises, and the instructor's entries about them in review.csv. comment: the instructor's,
    for the student. version, course: of grading (VERSION) and of the course that made the record.
    """

    student: str
    status: str
    marks: tuple[Mark, ...] = field(default=())
    digest: str = ""
    late_days: int = 0
    reason: str = ""
    flags: tuple[str, ...] = field(default=())
    accepted: tuple[str, ...] = field(default=())
    comment: str = ""
    version: int = 0
    course: str = ""

    @property
    def raw(self) -> float:
        return sum(mark.points or 0 for mark in self.marks)

    def total(self, penalty: float) -> float:
        """Return the total after `penalty`, a share of the points per late day."""
        return round(self.raw * max(0.0, 1 - penalty * self.late_days), 2)


def write_whole(path: Path, text: str) -> None:
    """Replace a file in one step, or not at all, even if power fails in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with open(beside, "w", encoding="utf-8", errors="backslashreplace") as file:  # an id may be a file's broken name
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def record_path(out: Path, student: str) -> Path:
    """Return the name of a student's file, for any id."""
    stem = "".join(letter if letter.isalnum() or letter in "-.@" else f"={ord(letter):x}=" for letter in student)
    if stem.startswith(".") or not stem:
        stem = f"={stem}"
    if len(stem.encode()) > MOST_NAME:
        stem = f"={sha256(stem.encode()).hexdigest()}"
    return out / "records" / f"{stem}.jsonl"


def save(out: Path, record: Record) -> None:
    head = asdict(record) | {"marks": len(record.marks)}
    lines = [head, *map(asdict, record.marks)]
    write_whole(record_path(out, record.student), "".join(json.dumps(line) + "\n" for line in lines))


def load(out: Path, student: str) -> Record | None:
    """Return a student's record, or None if there is no complete one."""
    try:
        head, *lines = (json.loads(line) for line in record_path(out, student).read_text().splitlines())
        if head.pop("marks") != len(lines):
            return None
        marks = tuple(Mark(**line | {"flags": tuple(line["flags"]), "cases": tuple(line["cases"])}) for line in lines)
        lists = {name: tuple(head.get(name, ())) for name in ("flags", "accepted")}
        return Record(**head | lists | {"marks": marks})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def changes(before: Mapping[str, Record | None], records: Iterable[Record]) -> Iterator[str]:
    """Return one line per student and exercise whose points have changed. before: student → earlier record."""
    for record in records:
        if old := before.get(record.student):
            was, now = ({mark.exercise: mark.points for mark in one.marks} for one in (old, record))
            for exercise in (one for one in was | now if was.get(one, 0) != now.get(one, 0)):
                points = (one.get(exercise, 0) for one in (was, now))
                points = ("to be looked at" if one is None else f"{number(one)} points" for one in points)
                yield f"{plain(record.student)} {exercise}: {' → '.join(points)}"


def overridden(record: Record, overrides: Mapping[tuple[str, str], float], most: Mapping[str, int]) -> Record:
    """Return the record with the instructor's points, which always win. overrides: (student, exercise) → points.
    most: exercise → its points."""
    given = {exercise: points for (student, exercise), points in overrides.items() if student == record.student}
    marks = tuple(
        replace(mark, points=given.pop(mark.exercise), status=OVERRIDE) if mark.exercise in given else mark
        for mark in record.marks
    )
    marks += tuple(Mark(exercise, points, most[exercise], OVERRIDE) for exercise, points in given.items())
    return with_status(replace(record, marks=marks))


def with_status(record: Record) -> Record:
    """Return the record of a readable notebook with the status that its marks and its time give it."""
    if record.status not in (GRADED, LATE, REVIEW):
        return record
    if any(mark.points is None for mark in record.marks):
        return replace(record, status=REVIEW)
    return replace(record, status=LATE if record.late_days else GRADED)


def grades_csv(records: Iterable[Record], names: Mapping[str, str], exercises: Sequence[str], penalty: float) -> str:
    """Return a table with one row per student and one column per exercise; an exercise that somebody has to look at
    is empty."""
    rows = []
    for record in records:
        points = {mark.exercise: "" if mark.points is None else number(mark.points) for mark in record.marks}
        total = record.total(penalty)
        row: dict[str, Any] = {
            "id": record.student, "name": names.get(record.student, ""), "status": record.status,
            "late days": record.late_days, **{name: points.get(name, 0) for name in exercises},
            "raw": number(record.raw), "penalty": number(record.raw - total), "total": number(total),
            "accepted": "; ".join(record.accepted),
        }  # fmt: skip
        rows.append(row)
    return csv_of(["id", "name", "status", "late days", *exercises, "raw", "penalty", "total", "accepted"], rows)


def csv_of(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="")
    table.writeheader()
    for row in rows:
        table.writerow({key: _plain(value) for key, value in row.items()})
    return text.getvalue()


def _plain(value: Any) -> Any:
    """Return a text that shows its type, and that a spreadsheet does not mistake for a formula."""
    if not isinstance(value, str):
        return value
    return guarded(plain(value, MOST_TEXT))


def guarded(cell: str) -> str:
    """Return the cell with a ' in front if a spreadsheet would take it for a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """Return the cell before it was `guarded`."""
    return cell.removeprefix("'") if _FORMULA.match(cell) else cell
