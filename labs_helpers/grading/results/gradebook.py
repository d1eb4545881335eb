"""What is kept of a class: a record per student, and tables made of all records. Each file is whole at any moment."""

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
OVERRIDE = "override"  # status of a mark whose points are the instructor's
UNKNOWN = "not in the class"  # flag of a student
MOST_NAME = 200  # bytes of a file's name: file systems take 255, and an ending and the file beside it need some
MOST_TEXT = 4_000  # characters in a cell of a table
_FORMULA = re.compile(r"[\s']*[=+\-@＝＋－＠]")  # with ', so that no two ids become one
STATUSES = (GRADED, LATE, REVIEW, MISSING, UNREADABLE, ERROR, WAITING)


@dataclass(frozen=True)
class Record:
    """One student's result. digest: of the file that was graded. late_days: begun days after the due time. reason: why
    there is nothing, or what went wrong. accepted: exercises and what the instructor wrote of them into review.csv.
    comment: the instructor's, for the student. version, course: of grading (VERSION) and of the course that made it."""

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
        """After `penalty`, a share of the points per day that it is late."""
        return round(self.raw * max(0.0, 1 - penalty * self.late_days), 2)


def write_whole(path: Path, text: str) -> None:
    """In the file's place at once, or not at all: power may fail in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with open(beside, "w", encoding="utf-8", errors="backslashreplace") as file:  # an id may be a file's broken name
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def record_path(out: Path, student: str) -> Path:
    """A file's name of any student's id."""
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
    """None where there is no whole record."""
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
    """A line per student and exercise whose points are others than before. before: student → earlier record."""
    for record in records:
        if old := before.get(record.student):
            was, now = ({mark.exercise: mark.points for mark in one.marks} for one in (old, record))
            for exercise in (one for one in was | now if was.get(one, 0) != now.get(one, 0)):
                points = (one.get(exercise, 0) for one in (was, now))
                points = ("to be looked at" if one is None else f"{number(one)} points" for one in points)
                yield f"{plain(record.student)} {exercise}: {' → '.join(points)}"


def overridden(record: Record, overrides: Mapping[tuple[str, str], float], most: Mapping[str, int]) -> Record:
    """With the instructor's points, which always win. overrides: (student, exercise) → points. most: exercise → its
    points."""
    given = {exercise: points for (student, exercise), points in overrides.items() if student == record.student}
    marks = tuple(
        replace(mark, points=given.pop(mark.exercise), status=OVERRIDE) if mark.exercise in given else mark
        for mark in record.marks
    )
    marks += tuple(Mark(exercise, points, most[exercise], OVERRIDE) for exercise, points in given.items())
    return with_status(replace(record, marks=marks))


def with_status(record: Record) -> Record:
    """A record of a notebook that was read, with the status that its marks and its time give it."""
    if record.status not in (GRADED, LATE, REVIEW):
        return record
    if any(mark.points is None for mark in record.marks):
        return replace(record, status=REVIEW)
    return replace(record, status=LATE if record.late_days else GRADED)


def grades_csv(records: Iterable[Record], names: Mapping[str, str], exercises: Sequence[str], penalty: float) -> str:
    """A row per student, a column per exercise; an exercise that somebody has to look at is empty."""
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
    """A text that shows what it is, and that a spreadsheet does not take for a formula."""
    if not isinstance(value, str):
        return value
    return guarded(plain(value, MOST_TEXT))


def guarded(cell: str) -> str:
    """With a ' in front where a spreadsheet would take the cell for a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """The cell before it was `guarded`."""
    return cell.removeprefix("'") if _FORMULA.match(cell) else cell
