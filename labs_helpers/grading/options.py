"""Read the options of the command that grades a class."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from labs_helpers.grading.jails.bubblewrap import LIMITS
from labs_helpers.grading.jails.memory import size


def options(described: str) -> argparse.ArgumentParser:
    program = "python -m labs_helpers.grading"
    usage = "%(prog)s LAB INBOX [options, which --help lists]"
    parser = argparse.ArgumentParser(prog=program, usage=usage, description=described)
    add = parser.add_argument
    add("lab", help="its number, as 02")
    add("inbox", help="a folder, or a zip, of ID.ipynb, ID_*.ipynb or ID/*.ipynb")
    add(
        "--class",
        dest="class_list",
        type=Path,
        help="CSV with the columns id and name, and if you like due and comment",
    )
    add("--out", type=Path, help="default: grades/NUMBER")
    add(
        "--due",
        type=time_of,
        help="such as 2026-10-01T23:59, in this machine's time zone; late is what was changed after it",
    )
    add("--late", type=_share, default=0.0, metavar="10%/day", help="of the points, per day begun; default: nothing")
    add("--jobs", type=int, default=2, help="submissions at once; default: %(default)s")
    add("--extensions", type=Path, help="CSV with the columns id and due: due times of single students")
    add(
        "--profile",
        default="",
        help="of a running ipyparallel cluster, whose engines grade: ipcluster start --profile …",
    )
    add("--seconds", type=float, default=LIMITS.seconds, help="of each exercise; default: %(default)s")
    add("--memory", type=size, default=LIMITS.memory, help="of all processes of a jail, such as 2G; default: 4G")
    add("--overrides", type=Path, help="CSV with the columns id, exercise and points, which always win, and comment")
    add(
        "--accept",
        type=Path,
        metavar="review.csv",
        help="a copy of OUT/review.csv with your column accept: yes, no, points",
    )
    add("--canvas", type=Path, help="the exported gradebook: OUT/grades-canvas.csv is the same with the grades")
    add("--column", default="", help="of this lab's grades in the gradebook of --canvas")
    add("--moodle", type=Path, help="the exported grading worksheet: OUT/grades-moodle.csv is the same with the grades")
    add("--regrade", action="store_true", help="those too that are graded")
    add("--no-nbval", action="store_true", help="no junit.xml: nbval does not run")
    add("--only", type=_ids, default=(), metavar="ID,…", help="grade these alone, again")
    add("--seed", type=int, help="of the hidden inputs; default: drawn once, and kept beside the grades")
    add("--image", type=Path, metavar="course.sif", help="grade in Apptainer with this image, in place of bubblewrap")
    add("--unsafe", action="store_true", help="grade without a jail: what students wrote can then do what you can")
    return parser


def time_of(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-10-01T23:59") from None


def _share(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)%(?:/day)?", text.replace(" ", ""))
    if not found or float(found[1]) > 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no share such as 10%/day")
    return float(found[1]) / 100


def _ids(text: str) -> Collection[str]:
    return tuple(filter(None, (one.strip() for one in text.split(","))))
