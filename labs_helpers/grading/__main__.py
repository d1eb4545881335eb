"""Grade a lab's submissions: python -m labs_helpers.grading 02 inbox/ --class class.csv --out grades/02

Each student's record is written as soon as it is there, so that the same command goes on where it was interrupted.
Exit status: 0 everybody is graded, 3 something needs a look, 1 the grader failed, 2 usage, 4 no jail here.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import ceil
from pathlib import Path

from labs_helpers.grading.class_run import Grading, grade_all
from labs_helpers.grading.cluster import NoEngines
from labs_helpers.grading.jails import kinds
from labs_helpers.grading.jails.bubblewrap import LIMITS
from labs_helpers.grading.jails.memory import size
from labs_helpers.grading.reading.inbox import BadInbox, HandedIn, class_list, students, unknown
from labs_helpers.grading.results import gradebook
from labs_helpers.grading.results.gradebook import ERROR, MISSING, STATUSES, Record
from labs_helpers.grading.results.plain_text import plain
from labs_helpers.grading.results.publish import write_results
from labs_helpers.grading.verdict import verdicts
from labs_helpers.grading.yardstick import NoYardstick, yardsticks
from labs_helpers.labs import Lab, lab


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
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
        overrides = gradebook.load_overrides(given.overrides) if given.overrides else {}
        handed_in = students(given.inbox, out / "inbox", names)
        _expect_known(graded, handed_in, names, given.only, overrides, given.overrides)
        seed = _seed(out, given.seed)
    except (BadInbox, ValueError, OSError) as error:
        parser.error(plain(error, 1_000))
    limits = replace(LIMITS, seconds=given.seconds, memory=given.memory)
    try:
        measure = yardsticks(graded, seed, limits, partial(verdicts, run_in=jail.run))
        grading = Grading(graded, measure, seed, limits, jail)
        records = grade_all(
            grading, handed_in, out, given.jobs, profile=given.profile, again=given.regrade, only=given.only
        )
    except (NoYardstick, NoEngines) as error:
        print(f"not everybody is graded: {error}", file=sys.stderr)
        return 1
    records = [_in_time(record, handed_in[record.student], given.due) for record in records]
    records = [gradebook.overridden(record, overrides) for record in _with_the_class(records, names)]
    looks, disagreements = write_results(
        out, records, names, graded, measure, given.late, given.jobs, nbval=not given.no_nbval
    )
    counts = {status: sum(record.status == status for record in records) for status in STATUSES}
    print(f"{', '.join(f'{count} {status}' for status, count in counts.items() if count)}: {out / 'index.html'}")
    for line in disagreements:
        print(f"the grade and nbval disagree: {line}", file=sys.stderr)
    if counts[ERROR] or disagreements:
        return 1
    return 3 if looks else 0


def _expect_known(
    graded: Lab,
    handed_in: Mapping[str, HandedIn],
    names: Mapping[str, str],
    only: Collection[str],
    overrides: Mapping[tuple[str, str], float],
    file: Path,
) -> None:
    """Raises BadInbox where an option names nobody, or no exercise."""
    if absent := set(only) - set(handed_in):
        raise BadInbox(f"nothing was handed in by {', '.join(sorted(absent))}")
    ids = {exercise.id for exercise in graded.exercises()}
    for student, exercise in overrides:
        if exercise not in ids:
            raise BadInbox(f"{file}: there is no exercise {exercise}")
        if student not in names.keys() | handed_in.keys():
            raise BadInbox(f"{file}: nobody is called {student}")


def _seed(out: Path, given: int | None) -> int:
    """The one that is given, or that this class was begun with, or a new one that nobody can know."""
    file = out / "seed"
    if given is None and file.exists():
        return int(file.read_text())
    seed = secrets.randbits(128) if given is None else given
    gradebook.write_whole(file, f"{seed}\n")
    return seed


def _in_time(record: Record, one: HandedIn, due: datetime | None) -> Record:
    """With the days that the file is late, a line where there were others, and what is odd about whose it is."""
    late = max(0, ceil((one.at - due).total_seconds() / 86_400)) if due else 0
    flags = (f"{len(one.others) + 1} files, of which the newest is graded",) if one.others else ()
    return gradebook.with_status(replace(record, late_days=late, flags=(*record.flags, *flags, *one.flags)))


def _with_the_class(records: list[Record], names: Mapping[str, str]) -> list[Record]:
    """Sorted, and with those who are missing or unknown."""
    there = {record.student for record in records}
    strangers = unknown(there, names) if names else []
    records = [
        replace(record, flags=(*record.flags, "not in the class")) if record.student in strangers else record
        for record in records
    ]
    records += [Record(student, MISSING, reason="nothing was handed in") for student in names if student not in there]
    return sorted(records, key=lambda record: record.student)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m labs_helpers.grading", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("lab", help="its number, as 02")
    add("inbox", type=Path, help="a folder, or a zip, of ID.ipynb, ID_*.ipynb or ID/*.ipynb")
    add("--class", dest="class_list", type=Path, help="CSV with the columns id and name")
    add("--out", type=Path, help="default: grades/NUMBER")
    add("--due", type=_time, help="such as 2026-10-01T23:59, in this machine's time zone")
    add("--late", type=_share, default=0.0, metavar="10%/day", help="of the points, per day begun; default: nothing")
    add("--jobs", type=int, default=2, help="submissions at once; default: %(default)s")
    add(
        "--profile",
        default="",
        help="of a running ipyparallel cluster, whose engines grade: ipcluster start --profile …",
    )
    add("--seconds", type=float, default=LIMITS.seconds, help="of each exercise; default: %(default)s")
    add("--memory", type=size, default=LIMITS.memory, help="of each process, such as 2G; default: 4G")
    add("--overrides", type=Path, help="CSV with the columns id, exercise and points, which always win")
    add("--regrade", action="store_true", help="those too that are graded")
    add("--no-nbval", action="store_true", help="no junit.xml: nbval does not run")
    add("--only", type=_ids, default=(), metavar="ID,…", help="grade these alone, again")
    add("--seed", type=int, help="of the hidden inputs; default: drawn once, and kept beside the grades")
    add("--image", type=Path, metavar="course.sif", help="grade in Apptainer with this image, in place of bubblewrap")
    add("--unsafe", action="store_true", help="grade without a jail: what students wrote can then do what you can")
    return parser


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _share(text: str) -> float:
    return float(text.removesuffix("/day").removesuffix("%")) / 100


def _ids(text: str) -> Collection[str]:
    return tuple(filter(None, (one.strip() for one in text.split(","))))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        sys.exit(130)  # as a shell has it
