"""The student's own page: their answers, the check's words about each, and the exercises that are still open.

It contains nothing of other students, no hidden input, and nothing meant only for the instructor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from labs_helpers.grading.marks import OPEN, Mark
from labs_helpers.grading.reading.plain_python import MOST_CHARACTERS
from labs_helpers.grading.results.feedback_template import PAGE
from labs_helpers.grading.results.flags import FLAGS
from labs_helpers.grading.results.gradebook import ERROR, GRADED, LATE, OVERRIDE, REVIEW, UNREADABLE, WAITING, Record
from labs_helpers.grading.results.plain_text import LEFT_OUT, number, plain
from labs_helpers.grading.verdict import RIGHT, TIMEOUT, WRONG
from labs_helpers.labs import Lab

MOST_LINES = 1_000  # of an answer that are shown
MOST_CASES = 100
STATUS = {
    GRADED: "",
    LATE: "",
    REVIEW: "This is not final: your instructor still looks at the exercises that have no points yet.",
    ERROR: "Grading did not work, through no fault of yours. This is no zero: your instructor looks at it.",
    WAITING: "Your notebook is not graded yet.",
    UNREADABLE: "Your file could not be graded",
}
_FILES = re.compile(r"\d+ files, of which the newest is graded")


def feedback_page(
    record: Record,
    name: str,
    sources: Mapping[str, str],
    all_cases: Mapping[str, Sequence[str]],
    lab: Lab,
    penalty: float,
) -> str:
    """Return the page as HTML that needs no other file. name: of the student, or ''. sources: exercise → the student's
    answer with own cells. all_cases: exercise → the lines of its check. penalty: share of the points per day that it is
    late.

    Everything from the submission appears only as text: shortened if it is long, and visible if it is odd.
    """
    marks = {mark.exercise: mark for mark in record.marks}
    titles = {one.id: (one.title, one.points) for one in lab.exercises()}
    shown = [
        _shown(
            mark,
            titles.get(exercise, ("retired", mark.most))[0],
            sources.get(exercise, ""),
            all_cases.get(exercise, ()),
        )
        for exercise, mark in ((one, marks[one]) for one in [*titles, *(set(marks) - set(titles))] if one in marks)
    ]
    most = sum(points for _, points in titles.values())
    return PAGE.render(
        lab=lab, student=record.student, name=name or record.student, total=record.total(penalty), most=most,
        lines=[*_lines(record, penalty), *map(str, lab.retired)], exercises=shown,
    )  # fmt: skip


def _lines(record: Record, penalty: float) -> Iterator[str]:
    """Return the lines about the submission as a whole."""
    yield from (f"Your instructor says: {line}" for line in record.comment.splitlines() if line.strip())
    if record.late_days and record.marks:
        days = f"{record.late_days} day{'s' if record.late_days > 1 else ''} late"
        off = record.raw - record.total(penalty)
        yield f"{days}: {number(record.raw)} points less {number(off)}, {penalty:.0%} per day." if off else f"{days}."
    said = STATUS.get(record.status, "There is no grade")
    if said and not said.endswith("."):
        said = f"{said}: {record.reason}." if record.reason else f"{said}."
    if said:
        yield said
    yield from (f"You handed in {flag}." for flag in record.flags if _FILES.fullmatch(flag))


def _shown(mark: Mark, title: str, source: str, all_cases: Sequence[str]) -> dict[str, Any]:
    """Return one exercise as the page shows it. look: a class of the page's style."""
    look, sign, result = _result(mark)
    number_of = mark.exercise.partition("/")[2]
    done = mark.status in (RIGHT, REVIEW) or (mark.status == OVERRIDE and not (mark.source and mark.cases))
    waiting = [] if done else still_to_pass(mark.cases, all_cases)
    lines = source[:MOST_CHARACTERS].splitlines()
    code = [*lines[:MOST_LINES], *([LEFT_OUT] if len(lines) > MOST_LINES or len(source) > MOST_CHARACTERS else [])]
    return {
        "anchor": f"exercise-{plain(number_of)}", "title": f"Exercise {plain(number_of)} · {plain(title)}",
        "most": mark.most, "points": "–" if mark.points is None else number(mark.points),
        "mark": sign, "look": look, "result": result, "note": _note(mark),
        "flags": [FLAGS[flag] for flag in mark.flags if flag in FLAGS],
        "passed": mark.cases[:MOST_CASES], "said": _said(mark),
        "waiting": waiting[:MOST_CASES] if mark.status != OPEN else (),
        "code": [plain(line, 1_000) for line in code],
    }  # fmt: skip


def _result(mark: Mark) -> tuple[str, str, str]:
    """Return a class of the page's style, a sign and a word."""
    if mark.points is None:
        return "open", "…", "not graded yet"
    if mark.status == OPEN:
        return "open", "○", "not attempted"
    if mark.status == OVERRIDE:
        look, sign = ("right", "✓") if mark.points >= mark.most else ("open", "○")
        return look, sign, "your instructor's points"
    if mark.points >= mark.most:
        return "right", "✓", "right"
    return "wrong", "✗", "partly right" if mark.points else "not right yet"


def _note(mark: Mark) -> str:
    if mark.status == OVERRIDE:
        return "Your instructor has set these points."
    if mark.points is None:
        return "Your instructor looks at this answer before it has points."
    if mark.status == OPEN:
        return "Not attempted."
    return ""


def _said(mark: Mark) -> tuple[tuple[str, bool], ...]:
    """Return the check's words; '' for an answer that the check accepted, because its later output, on hidden inputs
    or at its end, does not belong on this page."""
    if mark.status not in (WRONG, TIMEOUT) or "hidden-values" in mark.flags:
        return ()
    lines = plain(mark.reason, 4_000).splitlines()[:60]
    return tuple((line, line.lstrip().startswith("Likely cause:")) for line in lines)


def still_to_pass(passed: Sequence[str], all_cases: Sequence[str]) -> list[str]:
    """Return all cases except those that passed, in order. A line may name what the answer itself did and then
    differs from the reference's; since a check runs its cases in order, the first ones are those that passed."""
    if set(passed) <= set(all_cases):
        waiting = list(all_cases)
        for case in passed:
            if case in waiting:
                waiting.remove(case)
        return waiting
    return list(all_cases[len(passed) :])
