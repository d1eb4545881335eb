"""What an instructor should look at, a row each: exercises without points, odd cells, files that are no notebook."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from labs_helpers.grading.marks import HIDDEN, UNVERIFIED, Mark
from labs_helpers.grading.reading.submission import ELSEWHERE, IN_TEXT
from labs_helpers.grading.results.flags import FOR_INSTRUCTORS
from labs_helpers.grading.results.gradebook import ERROR, MISSING, OVERRIDE, UNREADABLE, Record, csv_of


def looks(records: Iterable[Record]) -> list[dict[str, str]]:
    """The rows of review.csv, those first of which something is to be decided."""
    rows = list[tuple[int, dict[str, str]]]()
    for record in records:
        if record.reason or record.flags:
            what = "; ".join(filter(None, (record.reason, *record.flags)))
            rank = 0 if record.status in (ERROR, UNREADABLE) else 2 if record.status == MISSING else 1
            rows.append((rank, _look(record, "", record.status, what)))
        for mark in record.marks:
            if mark.points is None or mark.flags:
                rows.append((_rank(mark), _look(record, mark.exercise, mark.status, _what(mark), mark.flags)))
    return [row for _, row in sorted(rows, key=itemgetter(0))]


def _rank(mark: Mark) -> int:
    """0 of what has no points yet, 1 of what may have lost some for no good reason, 2 of what is only odd."""
    if mark.points is None or (UNVERIFIED in mark.flags and mark.status != OVERRIDE):
        return 0
    return 1 if {HIDDEN, ELSEWHERE, IN_TEXT} & {*mark.flags} and mark.status != OVERRIDE else 2


def _what(mark: Mark) -> str:
    """Its flags as sentences, and what there is to do."""
    said = [FOR_INSTRUCTORS.get(flag, flag) for flag in mark.flags]
    if mark.points is None or {HIDDEN, ELSEWHERE, UNVERIFIED, IN_TEXT} & {*mark.flags}:
        said.append(mark.reason)
    if mark.points is None:
        said.append(f"See whether it is honest, and give it 0 to {mark.most} points in your file of OVERRIDES.")
    return " ".join(one if one.endswith((".", "?", "!")) else f"{one}." for one in said if one)


def _look(record: Record, exercise: str, status: str, what: str, flags: Iterable[str] = ()) -> dict[str, str]:
    return {"id": record.student, "exercise": exercise, "status": status, "what": what, "flags": " ".join(flags)}


def review_csv(records: Iterable[Record]) -> str:
    """A row for everything that somebody should look at."""
    return csv_of(["id", "exercise", "status", "what", "flags"], looks(records))
