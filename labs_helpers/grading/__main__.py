"""Grade a lab's submissions: python -m labs_helpers.grading 02 inbox/ --class class.csv --out grades/02

Each student's record is written as soon as it is there, so that the same command goes on where it was interrupted.
Exit status: 0 everybody is graded, 3 something needs a look, 1 the grader failed, 2 usage, 4 no jail here.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import ceil
from pathlib import Path
from threading import Event

from labs_helpers.grading import gradebook
from labs_helpers.grading.gradebook import ERROR, GRADED, MISSING, REVIEW, UNREADABLE, Record
from labs_helpers.grading.inbox import BadInbox, HandedIn, class_list, students, unknown
from labs_helpers.grading.jail import LIMITS, Limits, why_not
from labs_helpers.grading.marks import marks
from labs_helpers.grading.notebook_file import MOST_BYTES, Unreadable
from labs_helpers.grading.verdict import Verdict, verdicts
from labs_helpers.labs import LABS, Lab


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    lab = next((lab for lab in LABS if lab.number == given.lab), None)
    if lab is None:
        parser.error(f"there is no lab {given.lab}; there are {', '.join(lab.number for lab in LABS)}")
    if reason := why_not():
        print(f"no submission is run without a jail, and there is none here: {reason}", file=sys.stderr)
        return 4
    out = given.out or Path("grades") / lab.number
    try:
        names = class_list(given.class_list) if given.class_list else {}
        overrides = gradebook.load_overrides(given.overrides) if given.overrides else {}
        handed_in = students(given.inbox, out / "inbox")
    except (BadInbox, ValueError, OSError) as error:
        parser.error(str(error))
    limits = replace(LIMITS, seconds=given.seconds)
    records = grade_all(lab, handed_in, out, limits, given.jobs, given.due, again=given.regrade)
    records += [
        Record(student, MISSING, reason="nothing was handed in") for student in sorted(set(names) - set(handed_in))
    ]
    strangers = unknown(handed_in, names) if names else []
    records = sorted(
        (gradebook.overridden(_known(record, strangers), overrides) for record in records), key=lambda one: one.student
    )
    exercises = [exercise.id for exercise in lab.exercises()]
    gradebook.write_whole(out / "grades.csv", gradebook.grades_csv(records, names, exercises, given.late))
    gradebook.write_whole(out / "review.csv", gradebook.review_csv(records))
    counts = {
        status: sum(record.status == status for record in records)
        for status in (GRADED, REVIEW, MISSING, UNREADABLE, ERROR)
    }
    print(f"{', '.join(f'{count} {status}' for status, count in counts.items() if count)}: {out / 'grades.csv'}")
    if counts[ERROR]:
        return 1
    return 3 if len(gradebook.review_csv(records).splitlines()) > 1 else 0


def _known(record: Record, strangers: list[str]) -> Record:
    return replace(record, flags=(*record.flags, "not in the class")) if record.student in strangers else record


def grade_all(
    lab: Lab, handed_in: dict[str, HandedIn], out: Path, limits: Limits, jobs: int, due: datetime | None, again: bool
) -> list[Record]:
    """A Record per student, those kept from before included; `jobs` at once."""
    found, todo = [], []
    for one in handed_in.values():
        kept = None if again else gradebook.load(out, one.student)
        if kept and kept.digest == _digest(one.path) and kept.status != ERROR:
            found.append(kept)
        else:
            todo.append(one)
    began, over = datetime.now(UTC), Event()
    judge = partial(verdicts, over=over.is_set)
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(grade, lab, one, limits, due, judge) for one in todo]
        try:
            for number, done in enumerate(as_completed(running), start=1):
                record = done.result()
                gradebook.save(out, record)
                found.append(record)
                left = (datetime.now(UTC) - began) / number * (len(todo) - number)
                print(f"[{number}/{len(todo)}] {record.student}: {record.status}, {record.raw:g} points; "
                      f"{ceil(left.total_seconds() / 60)} min left", file=sys.stderr, flush=True)  # fmt: skip
        except BaseException:
            over.set()  # ends the jails, so that nothing has to be waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def grade(
    lab: Lab, one: HandedIn, limits: Limits, due: datetime | None, judge: Callable[..., list[Verdict]] = verdicts
) -> Record:
    """Never raises: what goes wrong is in the record, and is no zero."""
    late = max(0, ceil((one.at - due).total_seconds() / 86_400)) if due else 0
    flags = (f"{len(one.others) + 1} files, of which the newest is graded",) if one.others else ()
    record = Record(one.student, GRADED, digest=_digest(one.path), late_days=late, flags=flags)
    try:
        found = tuple(marks(one.path, lab, limits, judge))
    except Unreadable as error:
        return replace(record, status=UNREADABLE, reason=str(error))
    except Exception as error:
        return replace(record, status=ERROR, reason=f"{type(error).__name__}: {error}")
    status = REVIEW if any(mark.points is None for mark in found) else GRADED
    return replace(record, status=status, marks=found)


def _digest(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return "no file"
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(MOST_BYTES + 1)).hexdigest()


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
    add("--seconds", type=float, default=LIMITS.seconds, help="of each exercise; default: %(default)s")
    add("--overrides", type=Path, help="CSV with the columns id, exercise and points, which always win")
    add("--regrade", action="store_true", help="those too that are graded")
    return parser


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _share(text: str) -> float:
    return float(text.removesuffix("/day").removesuffix("%")) / 100


if __name__ == "__main__":
    sys.exit(main())
