"""Write everything derived from a class's records: tables, the class's page, a page per student, and nbval's report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from labs_helpers.grading.course_answers import CourseAnswer
from labs_helpers.grading.marks import Mark
from labs_helpers.grading.reading.notebook_file import read_cells
from labs_helpers.grading.results import gradebook
from labs_helpers.grading.results.class_page import class_page
from labs_helpers.grading.results.feedback import feedback_page
from labs_helpers.grading.results.flags import SAME, TWINS
from labs_helpers.grading.results.gradebook import MISSING, Record, write_whole
from labs_helpers.grading.results.nbval_run import NOTEBOOK, REPORT, junit
from labs_helpers.grading.results.pages import file_stem
from labs_helpers.grading.results.platforms import NEEDED, Sheet, write_sheet
from labs_helpers.grading.results.review import Accepted, accepted, looks, review_csv, with_accepted
from labs_helpers.grading.results.twins import Alike, is_long, same_as_reference, shared, twins
from labs_helpers.labs import Lab

NOTHING = Accepted()


def write_results(
    out: Path,
    records: Sequence[Record],
    names: Mapping[str, str],
    lab: Lab,
    course_answers: Mapping[str, CourseAnswer],
    penalty: float,
    *,
    nbval: bool = True,
    found: Accepted = NOTHING,
    sheets: Collection[Sheet] = (),
) -> tuple[int, list[str]]:
    """Write everything in `out` but the records, and remove pages of students who are no longer listed.

    penalty: share of the points that each late day costs. nbval: False writes no junit.xml. found: what the instructor
    wrote into review.csv. sheets: exports of platforms to fill in. Returns the number of rows of review.csv that the
    instructor has not accepted, and a line for each cell of which nbval and the grade disagree.
    """
    answers = {
        exercise: {
            record.student: mark.source
            for record in records
            for mark in record.marks
            if mark.exercise == exercise and mark.source
        }
        for exercise in course_answers
    }
    references = {exercise: one.source for exercise, one in course_answers.items()}
    shown = [cell.source for cell in read_cells(lab.path) if cell.code]
    alike = twins(answers, references, shown)
    long = {exercise: text for exercise, text in references.items() if is_long(text, shown)}
    records = [_compared(record, alike, long) for record in records]
    rows = looks(records)
    records = [accepted(record, found.by_answer) for record in records]
    for record in records:
        if (kept := gradebook.load(out, record.student)) and kept.accepted != record.accepted:
            gradebook.save(out, replace(kept, accepted=record.accepted))
    rows, of_before = with_accepted(rows, found)
    undecided = [row for row in rows if not row["accept"]]
    cases = {exercise: one.cases for exercise, one in course_answers.items()}
    exercises = [one.id for one in lab.exercises()]
    write_whole(out / "grades.csv", gradebook.grades_csv(records, names, exercises, penalty))
    write_whole(out / "review.csv", review_csv([*rows, *of_before]))
    for name in {f"grades-{platform}.csv" for platform in NEEDED} - {f"grades-{one.platform}.csv" for one in sheets}:
        (out / name).unlink(missing_ok=True)  # an older one would be of other grades
    for sheet in sheets:
        write_sheet(out, sheet, records, names, lab, penalty)
    files = (
        "grades.csv",
        "review.csv",
        *(f"grades-{one.platform}.csv" for one in sheets),
        *(["junit.xml"] if nbval else []),
    )
    write_whole(
        out / "index.html",
        class_page(records, names, lab, alike, shared(alike, answers), penalty, files, undecided),
    )
    pages = set()
    for record in records:
        if record.status != MISSING or record.comment:
            sources = {mark.exercise: mark.source for mark in record.marks}
            page = feedback_page(record, names.get(record.student, ""), sources, cases, lab, penalty)
            pages.add(name := f"{file_stem(record.student)}.html")
            write_whole(out / "feedback" / name, page)
    for path in (out / "feedback").glob("*.html"):
        if path.name not in pages:  # of somebody who is no longer listed
            path.unlink()
    if nbval:
        return len(undecided), junit(out, [record for record in records if record.marks], names, lab)
    for name in (NOTEBOOK, REPORT):
        (out / name).unlink(missing_ok=True)  # an older one would be of other grades
    return len(undecided), []


def _compared(record: Record, alike: Sequence[Alike], references: Mapping[str, str]) -> Record:
    """Return the record with flags on answers that are like others, if that says something."""
    like = {one.exercise for one in alike if one.telling and record.student in one.students}
    return replace(record, marks=tuple(_flagged(mark, like, references) for mark in record.marks))


def _flagged(mark: Mark, like: set[str], references: Mapping[str, str]) -> Mark:
    flags = [TWINS] if mark.exercise in like else []
    if mark.source and same_as_reference(mark.source, references.get(mark.exercise, "")):
        flags.append(SAME)
    return replace(mark, flags=(*mark.flags, *flags))
