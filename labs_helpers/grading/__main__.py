"""Grade a lab's submissions: python -m labs_helpers.grading 02 inbox/ --class class.csv --out grades/02

Each student's record is written as soon as it exists, so the same command resumes after an interrupt. Exit status: 0
everybody is graded, 3 something needs a look, 1 the grader failed, 2 usage, 4 no jail here.
"""

from __future__ import annotations

import secrets
import sys
from argparse import ArgumentTypeError
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import ceil
from pathlib import Path

from labs_helpers.grading import VERSION
from labs_helpers.grading.class_run import Grading, grade_all
from labs_helpers.grading.cluster import NoEngines
from labs_helpers.grading.course_answers import CourseAnswerFails, course_answers
from labs_helpers.grading.jails import kinds
from labs_helpers.grading.jails.bubblewrap import LIMITS
from labs_helpers.grading.jails.together import IN_WORDS, mechanism
from labs_helpers.grading.options import options, time_of
from labs_helpers.grading.reading.inbox import HandedIn, students
from labs_helpers.grading.reading.packed import BadInbox
from labs_helpers.grading.reading.tables import class_list, load_overrides, texts
from labs_helpers.grading.results import gradebook
from labs_helpers.grading.results.gradebook import ERROR, MISSING, STATUSES, UNKNOWN, WAITING, Record
from labs_helpers.grading.results.plain_text import plain
from labs_helpers.grading.results.platforms import read_sheet
from labs_helpers.grading.results.publish import write_results
from labs_helpers.grading.results.review import load_accepted
from labs_helpers.grading.verdict import verdicts
from labs_helpers.labs import lab

MOST_LATE = 0.8  # if a larger share of a class is late, the files' times are doubtful


def main(arguments: list[str] | None = None) -> int:
    parser = options((__doc__ or "").splitlines()[0])
    given = parser.parse_args(arguments)
    try:
        graded = lab(given.lab)
    except ValueError as error:
        parser.error(str(error))
    jail = kinds.chosen(given.image, given.unsafe)
    if reason := jail.why_not():
        print(f"no submission is run without a jail, and there is none here: {reason}", file=sys.stderr)
        return 4
    if jail.warning:
        print(jail.warning, file=sys.stderr)
    out = given.out or Path("grades") / graded.number
    try:
        names = class_list(given.class_list) if given.class_list else {}
        if not given.inbox:
            raise BadInbox("no inbox is named: SUBMISSIONS= is a folder, or a zip, of what students handed in")
        handed_in = students(Path(given.inbox), out / "inbox", names)
        if absent := set(given.only) - set(handed_in):
            raise BadInbox(f"nothing was handed in by {', '.join(sorted(absent))}")
        everybody = {*names, *handed_in}
        dues = _own_dues(filter(None, (given.class_list, given.extensions)), everybody)
        if given.late and not given.due and not dues:
            raise BadInbox("late days count from a due time: --late (LATE=) needs --due (DUE=)")
        most = {one.id: one.points for one in graded.exercises()}
        overrides = load_overrides(given.overrides, most, everybody) if given.overrides else {}
        comments = [
            texts(path, "comment", everybody) for path in (given.class_list, given.overrides) if path is not None
        ]
        exports = {"canvas": given.canvas, "moodle": given.moodle}
        sheets = [read_sheet(one, path, graded, given.column) for one, path in exports.items() if path]
        found = load_accepted([*out.glob("review.csv"), *([given.accept] if given.accept else [])], most)
        seed = _seed(out, given.seed)
    except (ValueError, OSError) as error:
        parser.error(plain(error, 1_000))
    limits = replace(LIMITS, seconds=given.seconds, memory=given.memory)
    before = {student: gradebook.load(out, student) for student in handed_in} if given.regrade else {}
    print(f"the memory of each jail is limited as a whole by {IN_WORDS[mechanism()]}", file=sys.stderr)
    print("checking the course's own answers on this machine…", file=sys.stderr, flush=True)
    try:
        measure = course_answers(graded, seed, limits, partial(verdicts, run_in=jail.run))
        grading = Grading(graded, measure, seed, limits, jail)
        records = grade_all(
            grading, handed_in, out, given.jobs, profile=given.profile, again=given.regrade, only=given.only
        )
    except (CourseAnswerFails, NoEngines) as error:
        print(f"not everybody is graded: {error}", file=sys.stderr)
        return 1
    changed = list(gradebook.changes(before, records))
    _warn_of_versions(records)
    records = [_in_time(record, handed_in[record.student], dues.get(record.student, given.due)) for record in records]
    _warn_of_time(records, given.due)
    _warn_of_overrides(out, given.overrides)
    records = [gradebook.overridden(record, overrides, most) for record in _with_the_class(records, names)]
    records = [
        replace(record, comment="\n".join(one[record.student] for one in comments if record.student in one))
        for record in records
    ]
    looks, disagreements = write_results(
        out, records, names, graded, measure, given.late, nbval=not given.no_nbval, found=found, sheets=sheets
    )
    counts = {status: sum(record.status == status for record in records) for status in STATUSES}
    print(f"{', '.join(f'{count} {status}' for status, count in counts.items() if count)}: {out / 'index.html'}")
    if given.regrade:
        print("\n".join(["Points before and after:", *changed]) if changed else "No points have changed.")
    for line in disagreements:
        print(f"the grade and nbval disagree: {line}", file=sys.stderr)
    if looks:
        print(f"{looks} row{'s' * (looks > 1)} to look at: {out / 'review.csv'}")
    if counts[ERROR] or disagreements:
        return 1
    return 3 if looks else 0


def _seed(out: Path, given: int | None) -> int:
    """Return the given seed, or the one that this class started with, or a new one that nobody can know."""
    file = out / "seed"
    if given is None and file.exists():
        return int(file.read_text())
    seed = secrets.randbits(128) if given is None else given
    gradebook.write_whole(file, f"{seed}\n")
    return seed


def _in_time(record: Record, one: HandedIn, due: datetime | None) -> Record:
    """Return the record with its late days and the file's flags."""
    late = max(0, ceil((one.at - due).total_seconds() / 86_400)) if due else 0
    flags = (f"{len(one.others) + 1} files, of which the newest is graded",) if one.others else ()
    return gradebook.with_status(replace(record, late_days=late, flags=(*record.flags, *flags, *one.flags)))


def _own_dues(paths: Iterable[Path], students: Collection[str]) -> dict[str, datetime]:
    """Return student → due time for students with an extension. BadInbox if a text is no time."""
    found = {}
    for path in paths:
        for student, text in texts(path, "due", students).items():
            try:
                found[student] = time_of(text)
            except ArgumentTypeError as error:
                raise BadInbox(f"{path}: due of {student}: {error}") from None
    return found


def _warn_of_versions(records: Collection[Record]) -> None:
    older = [record for record in records if record.status != WAITING and record.version < VERSION]
    if older:
        made = (
            f"{len(older)} of {len(records)} records were made by an older version of grading than this one, {VERSION}"
        )
        print(f"{made}; some points may differ. REGRADE=1 grades them again", file=sys.stderr)


def _warn_of_time(records: Collection[Record], due: datetime | None) -> None:
    late = sum(bool(record.late_days) for record in records)
    if due and late > MOST_LATE * len(records) and len(records) > 2:
        said = "a copy without its times (cp without -p) is as old as the copying"
        print(f"{late} of {len(records)} files were changed after DUE=; {said}", file=sys.stderr)


def _warn_of_overrides(out: Path, given: Path | None) -> None:
    """Warn if the last run had overrides and this one has none: the option may have been forgotten."""
    note = out / "overrides"
    if given:
        gradebook.write_whole(note, f"{given}\n")
    elif note.exists():
        before = plain(note.read_text().strip())
        print(
            f"the last grades counted the points in {before}, and these do not: name it with OVERRIDES=",
            file=sys.stderr,
        )
        note.unlink()


def _with_the_class(records: list[Record], names: Mapping[str, str]) -> list[Record]:
    """Sort the records, add students of the class who handed in nothing, and flag those who are not in the class."""
    there = {record.student for record in records}
    records = [
        replace(record, flags=(*record.flags, UNKNOWN)) if names and record.student not in names else record
        for record in records
    ]
    records += [Record(student, MISSING, reason="nothing was handed in") for student in names if student not in there]
    return sorted(records, key=lambda record: record.student)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        sys.exit(130)  # a shell's status for an interrupt
