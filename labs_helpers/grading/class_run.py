"""A class graded student by student, several at once. What was graded is kept, and is not graded again."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from threading import Event
from time import monotonic

from labs_helpers.grading import gradebook
from labs_helpers.grading.gradebook import ERROR, GRADED, UNREADABLE, WAITING, Record
from labs_helpers.grading.inbox import HandedIn
from labs_helpers.grading.jail import LIMITS, Limits
from labs_helpers.grading.marks import marks
from labs_helpers.grading.notebook_file import MOST_BYTES, Unreadable
from labs_helpers.grading.verdict import Verdict, verdicts
from labs_helpers.grading.yardstick import Yardstick
from labs_helpers.labs import Lab

Judge = Callable[..., list[Verdict]]


@dataclass(frozen=True)
class Grading:
    """What all students are graded by. seed: of the hidden inputs."""

    lab: Lab
    yardsticks: Mapping[str, Yardstick]
    seed: int
    limits: Limits = LIMITS


def grade_all(
    grading: Grading,
    handed_in: Mapping[str, HandedIn],
    out: Path,
    jobs: int,
    *,
    again: bool = False,
    only: Collection[str] = (),
) -> list[Record]:
    """A Record per student, those in `out` from before included; `jobs` at once.

    again: those too that are graded. only: these alone, again; of the others what there is.
    """
    found, todo = [], []
    for one in handed_in.values():
        kept = gradebook.load(out, one.student)
        known = kept is not None and kept.digest == _digest(one.path) and kept.status != ERROR
        if one.student in only or (not only and (again or not known)):
            todo.append(one)
        else:
            found.append(kept if known and kept else Record(one.student, WAITING, reason="not graded yet"))
    began, over = monotonic(), Event()
    judge = partial(verdicts, over=over.is_set)
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(grade, grading, one, judge) for one in todo]
        try:
            for number, done in enumerate(as_completed(running), start=1):
                record = done.result()
                gradebook.save(out, record)
                found.append(record)
                left = (monotonic() - began) / number * (len(todo) - number) / 60
                print(f"[{number}/{len(todo)}] {record.student}: {record.status}, {record.raw:g} points; "
                      f"{ceil(left)} min left", file=sys.stderr, flush=True)  # fmt: skip
        except BaseException:
            over.set()  # ends the jails, so that nothing has to be waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def grade(grading: Grading, one: HandedIn, judge: Judge = verdicts) -> Record:
    """Never raises: what goes wrong is in the record, and is no zero."""
    record = Record(one.student, GRADED, digest=_digest(one.path))
    try:
        found = marks(one.path, grading.lab, grading.yardsticks, grading.seed, grading.limits, judge)
    except Unreadable as error:
        return replace(record, status=UNREADABLE, reason=str(error))
    except Exception as error:
        return replace(record, status=ERROR, reason=f"{type(error).__name__}: {error}")
    return gradebook.with_status(replace(record, marks=tuple(found)))


def _digest(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return "no file"
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(MOST_BYTES + 1)).hexdigest()
