"""Read the instructor's tables: the class list, extensions, comments and overrides, with commas or semicolons."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from labs_helpers.grading.reading.packed import BadInbox
from labs_helpers.grading.results.plain_text import named
from labs_helpers.labs import retired


def text_of(path: Path) -> tuple[str, str]:
    """Return (text, separator) of a CSV file. BadInbox if it cannot be read."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except OSError as error:
        raise BadInbox(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInbox(f"{path} is not in UTF-8; a spreadsheet calls that 'CSV UTF-8'") from None
    first = text.partition("\n")[0]
    return text, ";" if ";" in first and "," not in first else ","


def rows_of(path: Path, needed: Collection[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (file and line, column → text) for each row of a CSV file. BadInbox if it lacks a column of `needed`."""
    text, separator = text_of(path)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    columns = [name.strip().lower() for name in rows.fieldnames or ()]
    for name in needed:
        if name not in columns:
            raise BadInbox(f"{path} has the columns {', '.join(columns) or 'none'}; one called {name} is needed")
    for row in rows:
        cells = {str(key).strip().lower(): (value or "").strip() for key, value in row.items() if key}
        yield f"{path}, line {rows.line_num}", cells


def class_list(path: Path) -> dict[str, str]:
    """Return id → name from a CSV file with the columns id and name. Raise BadInbox, with the error, for an invalid
    file."""
    found: dict[str, str] = {}
    for where, row in rows_of(path, ["id"]):
        if not row["id"]:
            raise BadInbox(f"{where}: the id is empty")
        student = named(row["id"])
        if student in found:
            raise BadInbox(f"{where}: {student} stands there twice")
        found[student] = " ".join(row.get("name", "").split())
    return found


def texts(path: Path, column: str, students: Collection[str]) -> dict[str, str]:
    """Return id → text of a column that the CSV file may have. Several rows of a student become several lines, each
    with the exercise in front. BadInbox for an id that nobody has."""
    found: dict[str, str] = {}
    for where, row in rows_of(path, ["id"]):
        if not (text := row.get(column, "")):
            continue
        if (student := named(row["id"])) not in students:
            raise BadInbox(f"{where}: nobody is called {student}")
        line = f"{row['exercise']}: {text}" if row.get("exercise") else text
        found[student] = f"{found[student]}\n{line}" if student in found else line
    return found


def load_overrides(path: Path, most: Mapping[str, float], students: Collection[str]) -> dict[tuple[str, str], float]:
    """Return (student, exercise) → points from a CSV file with the columns id, exercise and points. most: exercise →
    its points. BadInbox names a line that is wrong."""
    found: dict[tuple[str, str], float] = {}
    for where, row in rows_of(path, ["id", "exercise", "points"]):
        if row.get("comment") and not row["points"]:
            continue
        lab, _, number = row["exercise"].partition("/")
        student, exercise = named(row["id"]), f"{lab.zfill(2)}/{number}"
        if exercise not in most:
            if gone := retired(exercise):
                raise BadInbox(f"{where}: {gone[0]}")
            raise BadInbox(f"{where}: there is no exercise {row['exercise']}; there are {', '.join(most)}")
        if student not in students:
            raise BadInbox(f"{where}: nobody is called {student}")
        if (student, exercise) in found:
            raise BadInbox(f"{where}: {student}, {exercise} stands there twice")
        try:
            points = float(row["points"].replace(",", "."))
        except ValueError:
            raise BadInbox(f"{where}: points are a number, such as 4.5, and not {row['points'] or 'nothing'}") from None
        if not 0 <= points <= most[exercise]:  # nor nan
            raise BadInbox(f"{where}: {row['points']} of the {most[exercise]:g} points of {exercise} cannot be given")
        found[student, exercise] = points
    return found
