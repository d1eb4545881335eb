"""Broken or malicious files that students may hand in, with the points that each should get."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.grading.hostile import HOSTILE
from tests.grading.made_class import EXERCISES, LAB, SOLVED, Submission, the_class
from tests.grading.written import with_answers

NOTHING: dict[str, float | None] = dict.fromkeys(EXERCISES, 0.0)
ALL: dict[str, float | None] = {id: float(one.points) for id, one in EXERCISES.items()}


def make_class(folder: Path, kinds: Sequence[str], broken: Sequence[str], seed: int) -> list[Submission]:
    """In folder/inbox, with its list in folder/class.csv. kinds: of made_class. broken: of FILES."""
    (folder / "planted").mkdir(parents=True)
    made = the_class(kinds, seed, folder / "planted")
    shutil.rmtree(folder / "planted")
    write_class(made, folder / "inbox")
    made += add_broken(folder / "inbox", broken)
    rows = [f"{one.student},{one.kind}\n" for one in made]
    (folder / "class.csv").write_text("id,name\n" + "".join(rows))
    return made


def write_class(made: list[Submission], inbox: Path) -> None:
    """The notebooks of a class, as ID.ipynb, ID_02_fused_gemm.ipynb or ID/mine.ipynb."""
    inbox.mkdir(parents=True)
    for number, one in enumerate(made):
        name = (f"{one.student}.ipynb", f"{one.student}_02_fused_gemm.ipynb", f"{one.student}/mine.ipynb")[number % 3]
        write(inbox / name, one.notebook)


def write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def add_broken(inbox: Path, kinds: Sequence[str]) -> list[Submission]:
    """FILES in an inbox in which notebooks of s000, s003 … are."""
    made = []
    for number, kind in enumerate(kinds):
        status, points = FILES[kind](inbox / f"b{number:02d}.ipynb")
        made.append(Submission(f"b{number:02d}", kind, points, status=status))
    return made


Made = tuple[str, dict[str, float | None]]


def text(content: str) -> Callable[[Path], Made]:
    def make(path: Path) -> Made:
        path.write_text(content)
        return "unreadable", NOTHING

    return make


def hostile(name: str, exercise: str = "02/4") -> Callable[[Path], Made]:
    """The lab solved, with a hostile answer to one exercise, which costs that one alone."""

    def make(path: Path) -> Made:
        answer = HOSTILE[name].replace("NAME", EXERCISES[exercise].trial.__name__)
        write(path, with_answers(LAB, SOLVED | {exercise: answer}))
        return "graded", ALL | {exercise: 0.0}

    return make


def two_files(path: Path) -> Made:
    """The newer one counts."""
    for name, cells, at in (("old", {}, 1_000_000_000), ("new", SOLVED, 1_500_000_000), ("older", {}, 900_000_000)):
        file = path.with_suffix("") / f"{name}.ipynb"
        write(file, with_answers(LAB, cells))
        os.utime(file, (at, at))
    return "graded", ALL


def link(path: Path) -> Made:
    path.symlink_to(min(path.parent.glob("s*.ipynb")))
    return "unreadable", NOTHING


def conftest(path: Path) -> Made:
    """Programs beside the notebook, under names that Python and pytest look for."""
    write(path.with_suffix("") / "mine.ipynb", with_answers(LAB, {}))
    for name in ("conftest.py", "sitecustomize.py", "torch.py", "labs_helpers.py"):
        (path.with_suffix("") / name).write_text("open('/tmp/hostile-mark', 'w')\nraise SystemExit('hostile')\n")
    return "graded", NOTHING


FILES: dict[str, Callable[[Path], Made]] = {
    "not JSON": text('{"cells": [{"cell_type": "code", "sour'),
    "two files": two_files,
    "patched check": hostile("check patched"),
    "references": hostile("the transfer answer", "02/7"),
    "conftest.py": conftest,
    "a link": link,
}
