"""Fill the grades into Canvas's exported gradebook and Moodle's exported grading worksheet, for import there.

Rows and columns stay as they are. Only grades and feedback are written, and a cell that a spreadsheet would take for a
formula gets a ' in front. Column names are those of Canvas's gradebook_exporter.rb and of Moodle's assignment grading
table, in English.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from labs_helpers.grading.reading.packed import BadInbox
from labs_helpers.grading.reading.senders import orders
from labs_helpers.grading.reading.tables import text_of
from labs_helpers.grading.results.gradebook import Record, guarded, write_whole
from labs_helpers.grading.results.plain_text import number
from labs_helpers.labs import Lab

IDS = "ID", "SIS User ID", "SIS Login ID", "Identifier", "ID number", "Email address", "Username"
NAMES = "Student", "Full name"
FIRST_LAST = "FirstName", "LastName"  # which Canvas can write in place of 'Student'
NEEDED = {"canvas": ("ID", "SIS Login ID", "Section"), "moodle": ("Identifier", "Grade", "Last modified (grade)")}
FEEDBACK, CHANGEABLE, MOST = "Feedback comments", "Grade can be changed", "Maximum Grade"
NOT_GRADED = "EX", "N/A"  # Canvas: the student is excused, or has not got this assignment
POSSIBLE = "Points Possible"  # the name of a row in Canvas
MOST_NAMED = 5
_NO_FORMULA = re.compile(r"[-+]?[\d.,]*%?")  # a number, or the '-' with which Moodle says 'nothing'


@dataclass(frozen=True)
class Sheet:
    """An exported table. rows: the first one names the columns. separator: between cells. grade: the column of this
    lab's grades."""

    platform: str
    rows: list[list[str]]
    separator: str
    grade: str

    def cell(self, row: list[str], column: str) -> str:
        """Moodle's releases differ in capitals."""
        names = [name.casefold() for name in self.rows[0]]
        return dict(zip(names, row, strict=False)).get(column.casefold(), "").strip()

    def put(self, row: list[str], column: str, text: str) -> None:
        row[self.rows[0].index(column)] = text


def read_sheet(platform: str, path: Path, lab: Lab, column: str = "") -> Sheet:
    """Read an exported table. platform: 'canvas' or 'moodle'. column: of this lab's grades in Canvas; '' looks for
    one with the lab's number or title. BadInbox says what is missing."""
    text, separator = text_of(path)
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]
    columns = rows[0] if rows else []
    if absent := [name for name in NEEDED[platform] if name not in columns]:
        raise BadInbox(f"{path} is no export of {platform.title()}: it has no column {', '.join(absent)}")
    rows = [row + [""] * (len(columns) - len(row)) for row in rows]
    if platform == "moodle":
        return Sheet(platform, rows, separator, "Grade")
    found = [name for name in columns if re.search(r" \(\d+\)$", name)]
    ours = rf"\blab 0*{int(lab.number)}\b|{re.escape(lab.title)}|{re.escape(Path(lab.notebook).stem)}"
    chosen = [name for name in found if (name == column if column else re.search(ours, name, re.IGNORECASE))]
    if len(chosen) != 1:
        said = f"say which column has the grades of lab {lab.number}, with COLUMN='NAME (ID)'"
        raise BadInbox(f"{path}: {said}. There are: {'; '.join(found) or 'none with an ID'}")
    return Sheet(platform, rows, separator, chosen[0])


def write_sheet(
    out: Path, sheet: Sheet, records: Collection[Record], names: Mapping[str, str], lab: Lab, penalty: float
) -> None:
    """Write OUT/grades-canvas.csv or grades-moodle.csv, and return who is not in it. A cell stays as it is if the
    student has no final grade, or if the row must not be changed. names, penalty: as for `publish.write_results`."""
    final = {one.student: one for one in records if one.marks and all(mark.points is not None for mark in one.marks)}
    theirs = [_student(sheet, row, final, names) for row in sheet.rows[1:]]
    rows = [list(row) for row in sheet.rows]
    for row, student in zip(rows[1:], theirs, strict=True):
        fixed = sheet.cell(row, CHANGEABLE) == "No" or sheet.cell(row, sheet.grade) in NOT_GRADED
        if student and theirs.count(student) == 1 and not fixed:
            record = final.pop(student)
            sheet.put(row, sheet.grade, number(record.total(penalty)))
            said = sheet.cell(row, FEEDBACK)
            if FEEDBACK in rows[0] and (not said or said.startswith(f"Lab {lab.number}: {lab.number}/")):
                sheet.put(row, FEEDBACK, _feedback(record, lab))
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=sheet.separator).writerows([_safe(cell) for cell in row] for row in rows)
    name = f"grades-{sheet.platform}.csv"
    write_whole(out / name, text.getvalue())
    if final:
        some = ", ".join([*final][:MOST_NAMED]) + ("…" if len(final) > MOST_NAMED else "")
        print(f"{name} has no row, or none that may be changed, for {len(final)} graded: {some}", file=sys.stderr)
    told = [sheet.cell(row, sheet.grade) for row in rows if row[0].strip() == POSSIBLE]
    told += [sheet.cell(row, MOST) for row in rows[1:]]
    most = sum(one.points for one in lab.exercises())
    if other := {text for text in told if re.fullmatch(r"[\d.]+", text) and float(text) != most}:
        said = f"the lab has {most} points, and the platform expects {', '.join(sorted(other))}"
        print(f"{name}: {said}; set its maximum to {most} before you import", file=sys.stderr)


def _student(sheet: Sheet, row: list[str], students: Collection[str], names: Mapping[str, str]) -> str:
    """Return whose row it is, by an id or by a name that no other student has; or ''."""
    ids = {sheet.cell(row, column) for column in IDS} - {""}
    ids |= {one.removeprefix("Participant ") for one in ids}
    names_here = [sheet.cell(row, column) for column in NAMES] + [" ".join(sheet.cell(row, one) for one in FIRST_LAST)]
    called = {order for name in names_here for order in orders(name)}
    if found := ids & {*students}:
        student, *others = found
        # The class list may have numbers of its own: one counts where the name agrees.
        another = student.isdecimal() and called and names.get(student) and not called & orders(names[student])
        return "" if others or another else student
    called |= {f"{order}{id}" for order in called for id in ids}
    like = [student for student in students if called & orders(names.get(student) or student)]
    return like[0] if len(like) == 1 else ""


def _feedback(record: Record, lab: Lab) -> str:
    """Return the feedback as HTML, which is how Moodle reads it."""
    points = ", ".join(f"{one.exercise}: {number(one.points or 0)} of {one.most}" for one in record.marks)
    late = f" Late days: {record.late_days}." if record.late_days else ""
    return escape(f"Lab {lab.number}: {points}.{late} {record.comment}".strip()).replace("\n", "<br>")


def _safe(cell: str) -> str:
    return cell if _NO_FORMULA.fullmatch(cell) else guarded(cell)
