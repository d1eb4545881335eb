"""Grade a class student by student, several at the same time. Graded students are kept and not graded again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import sys
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from time import monotonic

from labs_helpers.grading import VERSION, cluster
from labs_helpers.grading.course_answers import CourseAnswer
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits
from labs_helpers.grading.jails.kinds import BUBBLEWRAP, Jail
from labs_helpers.grading.marks import marks
from labs_helpers.grading.pool import Over, graded_here
from labs_helpers.grading.reading.inbox import HandedIn
from labs_helpers.grading.reading.notebook_file import MOST_BYTES, Unreadable
from labs_helpers.grading.results import gradebook
from labs_helpers.grading.results.gradebook import ERROR, GRADED, UNREADABLE, WAITING, Record
from labs_helpers.grading.results.plain_text import plain
from labs_helpers.grading.verdict import verdicts
from labs_helpers.labs import Lab

COURSE = importlib.metadata.version("tile-to-cluster")
NO_JAIL = "graded without a jail"


@dataclass(frozen=True)
class Grading:
    """The settings that all students are graded with. seed: of the hidden inputs."""

    lab: Lab
    course_answers: Mapping[str, CourseAnswer]
    seed: int
    limits: Limits = LIMITS
    jail: Jail = BUBBLEWRAP


def grade_all(
    grading: Grading,
    handed_in: Mapping[str, HandedIn],
    out: Path,
    jobs: int,
    *,
    profile: str = "",
    again: bool = False,
    only: Collection[str] = (),
) -> list[Record]:
    """Return a Record per student, including earlier ones in `out`. `jobs` students are graded at the same time, or the
    engines of the ipyparallel cluster of `profile` grade them.

    again: grade students again who have a record. only: grade only these again, and keep the records of the others.
    Raises cluster.NoEngines.
    """
    found, todo = [], []
    for one in handed_in.values():
        kept = gradebook.load(out, one.student)
        known = kept is not None and kept.digest == _digest(one) and kept.status != ERROR
        if one.student in only or (not only and (again or not known)):
            todo.append(one)
        else:
            found.append(kept if known and kept else Record(one.student, WAITING, reason="not graded yet"))
    began = monotonic()
    with closing(_graded(grading, todo, jobs, profile)) as graded:
        for number, record in enumerate(graded, start=1):
            gradebook.save(out, record)
            found.append(record)
            left = ceil((monotonic() - began) / number * (len(todo) - number) / 60)
            said = f"{plain(record.student)}: {record.status}, {record.raw:g} points; {left} min left"
            print(f"[{number}/{len(todo)}] {said}", file=sys.stderr, flush=True)
    return found


def _graded(grading: Grading, todo: Sequence[HandedIn], jobs: int, profile: str) -> Generator[Record, None, None]:
    grade_one: Callable[[HandedIn, Over], Record] = partial(grade, grading)
    if profile and todo:
        yield from cluster.graded_on(profile, todo, grade_one, grading.jail.why_not)
    else:
        yield from graded_here(jobs, todo, grade_one)


def grade(grading: Grading, one: HandedIn, over: Over = bool) -> Record:
    """Grade one student. Never raises: a failure becomes part of the record, and is not a zero. over: called
    repeatedly during the grading; True ends it."""
    flags = (NO_JAIL,) if grading.jail.name == "none" else ()
    record = Record(one.student, GRADED, digest=_digest(one), flags=flags, version=VERSION, course=COURSE)
    if one.instead:
        return replace(record, status=UNREADABLE, reason=f"no notebook (.ipynb) was handed in, but {one.instead}")
    judge = partial(verdicts, over=over, run_in=grading.jail.run)
    try:
        found = marks(one.path, grading.lab, grading.course_answers, grading.seed, grading.limits, judge)
    except Unreadable as error:
        return replace(record, status=UNREADABLE, reason=str(error))
    except Exception as error:
        return replace(record, status=ERROR, reason=f"{type(error).__name__}: {error}")
    return gradebook.with_status(replace(record, marks=tuple(found)))


def _digest(one: HandedIn) -> str:
    path = one.path
    if one.instead:
        return one.instead
    if path.is_symlink() or not path.is_file():
        return "no file"
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(MOST_BYTES + 1)).hexdigest()
