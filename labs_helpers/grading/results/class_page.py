"""The instructor's page about a class: the points of each student, the results of each exercise, and the items to
review."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from labs_helpers.grading.marks import OPEN, Mark
from labs_helpers.grading.results.class_template import PAGE
from labs_helpers.grading.results.gradebook import MISSING, OVERRIDE, STATUSES, UNKNOWN, Record
from labs_helpers.grading.results.pages import feedback_link
from labs_helpers.grading.results.plain_text import number
from labs_helpers.grading.results.review import looks
from labs_helpers.grading.results.twins import Alike, Shared
from labs_helpers.grading.verdict import RIGHT
from labs_helpers.labs import Lab

MOST_ROWS = 500  # of what needs a look, and of answers that are alike
MOST_PAIRS = 50
MOST_NAMED = 20  # students with one answer
COMMONEST = 3  # reasons per exercise
BINS = 10  # of the histogram
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


def class_page(
    records: Sequence[Record],
    names: Mapping[str, str],
    lab: Lab,
    alike: Sequence[Alike],
    pairs: Sequence[Shared],
    penalty: float,
    files: Sequence[str] = ("grades.csv", "review.csv", "junit.xml"),
    rows: Sequence[Mapping[str, str]] | None = None,
) -> str:
    """Return the page as HTML that needs no other file. It links to `files` beside it, and to feedback/ID.html for
    students who handed in.

    names: student → name. alike: students with one answer. pairs: students who share several. penalty: share of the
    points per day that a file is late. rows: what needs a look, by default from `review.looks`.
    """
    exercises = lab.exercises()
    most = sum(one.points for one in exercises)
    there = [record for record in records if record.marks and UNKNOWN not in record.flags]
    totals = [record.total(penalty) for record in there]
    todo = [(row["id"], row["exercise"], row["what"]) for row in (looks(records) if rows is None else rows)]
    return PAGE.render(
        lab=lab,
        most=most,
        counts=[(status, found) for status in STATUSES if (found := sum(one.status == status for one in records))],
        there=len(there),
        mean=fmean(totals) if totals else None,
        median=median(totals) if totals else None,
        bars=bars(totals, most),
        exercises=[_exercise(one, [_of(one.id, who) for who in there]) for one in exercises],
        looks=todo[:MOST_ROWS],
        more_looks=max(0, len(todo) - MOST_ROWS),
        alike=alike[:MOST_ROWS],
        more_alike=max(0, len(alike) - MOST_ROWS),
        pairs=pairs[:MOST_PAIRS],
        more_pairs=max(0, len(pairs) - MOST_PAIRS),
        most_named=MOST_NAMED,
        students=[(record, record.total(penalty), [_points(_of(one.id, record), record) for one in exercises])
                  for record in sorted(records, key=lambda one: one.student)],
        names=names,
        files=files,
        link=feedback_link,
        with_page={record.student for record in records if record.status != MISSING or record.comment},
    )  # fmt: skip


def _of(exercise: str, record: Record) -> Mark | None:
    return next((mark for mark in record.marks if mark.exercise == exercise), None)


def _points(mark: Mark | None, record: Record) -> tuple[str, str]:
    """Return the points as the table shows them, and a class of the page's style."""
    if mark is None:
        return ("0", "open") if record.marks else ("", "")
    if mark.points is None:
        return "…", "open"
    return number(mark.points), "right" if mark.points >= mark.most else "wrong" if mark.status != OPEN else "open"


def bars(totals: Sequence[float], most: float) -> list[tuple[float, int, float]]:
    """Return (lowest points, number of students, that number in % of the largest) for each of BINS equal steps. The
    last one includes full points."""
    counts = Counter(max(0, min(BINS - 1, int(total / most * BINS))) for total in totals)
    largest = max(counts.values(), default=1)
    return [(most * place / BINS, counts[place], 100 * counts[place] / largest) for place in range(BINS)]


def _exercise(one: Any, found: Sequence[Mark | None]) -> dict[str, Any]:
    """Return one exercise's row. share: of those who handed in, the part with a right answer. mean: of the points
    given. reasons: sentences and how often each occurs."""
    marks = [mark for mark in found if mark]
    points = [mark.points for mark in marks if mark.points is not None]
    wrong = [mark for mark in marks if mark.status not in (RIGHT, OPEN, OVERRIDE) and mark.points is not None]
    said = Counter(map(gist, wrong))
    words = {gist(mark): _first(mark.reason) for mark in reversed(wrong)}
    right = sum(mark.points is not None and mark.points >= one.points for mark in marks)
    return {
        "id": one.id, "title": one.title, "most": one.points, "share": right / max(1, len(marks)),
        "mean": fmean(points) if points else None, "open": sum(mark.status == OPEN for mark in marks),
        "waiting": len(marks) - len(points),
        "reasons": [(words[key], count) for key, count in said.most_common(COMMONEST)],
    }  # fmt: skip


def gist(mark: Mark) -> str:
    """Return the common part of several students' reasons: the likely cause, or the first line without its numbers."""
    return _DIGITS.sub("0", _first(mark.reason))


def _first(reason: str) -> str:
    """Return the line of the likely cause, or the first line with its case."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    causes = [line.partition(":")[2].strip() for line in lines if line.startswith("Likely cause:")]
    return (causes or lines or ["no reason is given"])[0]
