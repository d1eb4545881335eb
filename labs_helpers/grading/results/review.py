"""List the answers that an instructor should review, one row per student and reason, and read the instructor's
decisions from the same file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import inf
from operator import itemgetter
from pathlib import Path

from labs_helpers.grading.marks import HIDDEN, Mark
from labs_helpers.grading.reading.packed import BadInbox
from labs_helpers.grading.reading.submission import ELSEWHERE, IN_TEXT
from labs_helpers.grading.reading.tables import rows_of
from labs_helpers.grading.results import gradebook
from labs_helpers.grading.results.flags import FOR_INSTRUCTORS
from labs_helpers.grading.results.gradebook import OVERRIDE, Record, unguarded

COLUMNS = ("id", "exercise", "status", "what", "flags", "accept", "answer")
DOUBTS = {HIDDEN, ELSEWHERE, IN_TEXT}  # flags of answers that may have lost points for no good reason
Row = dict[str, str]


@dataclass(frozen=True)
class Accepted:
    """The instructor's entries in review.csv. rows: those with an `accept`, or with a column that the instructor
    added. by_answer: `answer_id` → 'yes', 'no' or points."""

    rows: tuple[Row, ...] = ()
    by_answer: Mapping[str, str] = field(default_factory=dict)


def load_accepted(paths: Iterable[Path], most: Mapping[str, float]) -> Accepted:
    """Read review.csv and copies of it; of two rows about an answer the one in the later file counts. most: exercise →
    its points. BadInbox names a line that says neither yes, nor no, nor points that the exercise has, or that
    contradicts another one of its file."""
    rows, by_answer = dict[str, Row](), dict[str, str]()
    for path in paths:
        said = dict[str, str]()
        for where, cells in rows_of(path, ()):
            row = {column: unguarded(text) for column, text in cells.items()}
            row["accept"] = accept = row.get("accept", "").lower()
            answers, exercises = row.get("answer", "").split(), row.get("exercise", "").split()
            if accept and not (answers and (accept == "yes" or (exercises and _is_points(accept)))):
                what = "yes, no or points, in a row that names an exercise and has its `answer`"
                raise BadInbox(f"{where}: accept is {what}, and not {accept}")
            for one in exercises if accept not in ("", "yes", "no") else ():
                if _points(accept) > most.get(one, inf):
                    raise BadInbox(f"{where}: accept is {accept}, and {one} has only {most[one]:g} points")
            for answer in answers:
                other, said[answer] = said.get(answer, ""), accept or said.get(answer, "")
                if other and said[answer] != other:
                    raise BadInbox(f"{where}: accept is {accept}, and {other} in another row about this answer")
            if accept or _own(row):
                key = row.get("answer") or repr(row)
                rows[key] = rows.get(key, {}) | {column: text for column, text in row.items() if text}
        by_answer |= said
    return Accepted(tuple(rows.values()), {answer: accept for answer, accept in by_answer.items() if accept})


def _own(row: Row) -> Row:
    """Return the entries in columns that the instructor added."""
    return {column: text for column, text in row.items() if text and column not in COLUMNS}


def _is_points(text: str) -> bool:
    return text == "no" or text.replace(",", ".", 1).replace(".", "", 1).isdecimal()


def _points(accept: str) -> float:
    return float(accept.replace(",", "."))


def accepted(record: Record, by_answer: Mapping[str, str]) -> Record:
    """Return the record with the points that the instructor accepts, except those that OVERRIDES set."""
    marks, said = list[Mark](), list[str]()
    for mark in record.marks:
        told = by_answer.get(answer_id(record.student, mark.exercise, mark.source), "")
        if told and mark.status != OVERRIDE:
            points = mark.most if told == "yes" else 0 if told == "no" else min(mark.most, _points(told))
            said.append(f"{mark.exercise} {told}")
            mark = mark if mark.points == points else replace(mark, points=points, status=OVERRIDE)
        marks.append(mark)
    return gradebook.with_status(replace(record, marks=tuple(marks), accepted=tuple(said)))


def answer_id(student: str, exercise: str, text: str) -> str:
    """Return an id that stays the same as long as the answer does. It starts with a letter, so that no spreadsheet
    takes it for a number."""
    return "a" + sha256("\0".join((student, exercise, text)).encode(errors="surrogatepass")).hexdigest()[:12]


def looks(records: Iterable[Record]) -> list[Row]:
    """Return the rows of review.csv, those that need a decision first."""
    rows = list[tuple[int, Row]]()
    for record in records:
        if record.reason or record.flags:
            what = "; ".join(filter(None, (record.reason, *record.flags)))
            rank = (
                0
                if record.status in (gradebook.ERROR, gradebook.UNREADABLE)
                else 2
                if record.status == gradebook.MISSING
                else 1
            )
            rows.append((rank, _row(record, (), what)))
        odd = dict[tuple[str, ...], list[Mark]]()
        for mark in record.marks:
            if (rank := _rank(mark)) < 2:
                rows.append((rank, _row(record, [mark], _what(mark), mark.flags)))
            elif mark.flags:
                odd.setdefault(mark.flags, []).append(mark)
        rows += [(2, _row(record, marks, _sentences(flags), flags)) for flags, marks in odd.items()]
    return [row for _, row in sorted(rows, key=itemgetter(0))]


def _rank(mark: Mark) -> int:
    """Return 0 for an answer without points so far, 1 for one that may have lost some for no good reason, 2 for one
    that is only odd."""
    if mark.points is None:
        return 0
    return 1 if DOUBTS & {*mark.flags} and mark.status != OVERRIDE else 2


def _what(mark: Mark) -> str:
    """Return its flags as sentences, its reason, and what to do."""
    reason = "" if IN_TEXT in mark.flags else mark.reason  # which says the same
    todo = f"Read it, and write yes, no or 0 to {mark.most} points into the column accept of review.csv."
    return _sentences((*mark.flags, reason, todo))


def _sentences(said: Iterable[str]) -> str:
    told = (FOR_INSTRUCTORS.get(one, one) for one in said if one)
    return " ".join(one if one.endswith((".", "?", "!")) else f"{one}." for one in told)


def _row(record: Record, marks: Sequence[Mark], what: str, flags: Iterable[str] = ()) -> Row:
    answers = [answer_id(record.student, mark.exercise, mark.source) for mark in marks]
    return {
        "id": record.student,
        "exercise": " ".join(mark.exercise for mark in marks),
        "status": ", ".join(dict.fromkeys(mark.status for mark in marks)) or record.status,
        "what": what,
        "flags": " ".join(flags),
        "accept": "",
        "answer": " ".join(answers or [answer_id(record.student, "", what)]),
    }


def with_accepted(rows: Collection[Row], found: Accepted) -> tuple[list[Row], list[Row]]:
    """Return the rows with the instructor's entries, and the instructor's rows that match no present answer."""
    by_row = {row.get("answer", ""): row for row in found.rows}
    today = {answer for row in rows for answer in row["answer"].split()}
    filled = list[Row]()
    for row in rows:
        own = _own(by_row.pop(row["answer"], {}))
        (accept, *differ) = {found.by_answer.get(answer, "") for answer in row["answer"].split()}
        filled.append(row | own | {"accept": "" if differ else accept})
    others = [row for row in by_row.values() if _own(row) or not set(row.get("answer", "").split()) <= today]
    return filled, others


def review_csv(rows: Sequence[Row]) -> str:
    """Return the table, with the instructor's own columns after the others."""
    return gradebook.csv_of(list(dict.fromkeys((*COLUMNS, *(column for row in rows for column in row)))), rows)
