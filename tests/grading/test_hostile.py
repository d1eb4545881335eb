"""Test hostile answers, notebooks and files: none gets points by itself, each affects only its own exercise, leaves
nothing behind, and reveals nothing that students do not get."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from labs_helpers.grading.jails.bubblewrap import why_not
from labs_helpers.grading.results import gradebook
from labs_helpers.grading.results.gradebook import Record
from labs_helpers.grading.results.plain_text import named
from labs_helpers.labs import ROOT
from tests.grading.hostile import HOSTILE
from tests.grading.hostile_notebooks import LAB, NOTEBOOKS, notebook, odd_files
from tests.grading.interrupted import Run, grade, left_behind
from tests.grading.secrets import answers
from tests.grading.written import solved, with_answers

EXERCISES = LAB.exercises()
SEED = 836_124_907_551
SECONDS = 25  # of an exercise: time for the right ones on a busy machine, and as much for every endless one


@dataclass
class Graded:
    """hostile: student → {exercise: the name of a hostile answer}. records: student → what is kept of it."""

    run: Run
    folder: Path
    hostile: dict[str, dict[str, str]] = field(default_factory=dict)
    notebooks: dict[str, str] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)


def submissions() -> dict[str, dict[str, str]]:
    """Student → {exercise: the name of a hostile answer}, five to a submission; its other exercise is solved."""
    found: dict[str, dict[str, str]] = {}
    names, ids = list(HOSTILE), [one.id for one in EXERCISES]
    while names:
        others = [id for id in ids if id != ids[len(found) % len(ids)]]
        found[f"h{len(found):02d}"] = {id: names.pop(0) for id in others[: len(names)]}
    return found


def grade_hostile(folder: Path) -> Graded:
    """All of them, and hostile notebooks and odd files beside them: a class, graded by the command."""
    inbox, right = folder / "inbox", solved(LAB)
    inbox.mkdir()
    hostile, notebooks = submissions(), {f"n{number:02d}": name for number, name in enumerate(NOTEBOOKS)}
    functions = {one.id: one.trial.__name__ for one in EXERCISES}
    for student, told in hostile.items():
        cells = {id: HOSTILE[name].replace("NAME", functions[id]) for id, name in told.items()}
        (inbox / f"{student}.ipynb").write_text(json.dumps(with_answers(LAB, right | cells)))
    for student, name in notebooks.items():
        (inbox / f"{student}.ipynb").write_text(notebook(name))
    odd_files(inbox)
    run = grade(folder, [], ["--seed", str(SEED), "--seconds", str(SECONDS)], timeout=1500, lab=LAB.number)
    found = Graded(run, folder, hostile, notebooks)
    for student in (*hostile, *notebooks):
        record = gradebook.load(run.out, student)
        assert record, run.log
        found.records[student] = record
    return found


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    return grade_hostile(tmp_path_factory.mktemp("hostile"))


needs_jail = [
    pytest.mark.soak,
    pytest.mark.timeout(1700),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.xdist_group("hostile"),
]


class TestInJails:
    pytestmark = needs_jail

    def test_hostile_answers_cost_their_own_exercise_alone(self, graded):
        wrong = []
        for student, told in graded.hostile.items():
            for mark in graded.records[student].marks:
                right = 0 if mark.exercise in told else mark.most
                if (mark.points or 0) != right or (mark.exercise in told and not mark.reason):
                    wrong.append(
                        (told.get(mark.exercise, "the right one"), mark.points, mark.status, mark.reason[:300])
                    )
        assert wrong == []

    def test_hostile_notebooks_get_what_their_answers_are_worth(self, graded):
        given = {name: (graded.records[one].raw, graded.records[one].status) for one, name in graded.notebooks.items()}
        assert {name: points for name, (points, _) in given.items()} == {
            name: row[1] for name, row in NOTEBOOKS.items()
        }
        assert {status for _, status in given.values()} <= {gradebook.GRADED, gradebook.REVIEW}

    def test_nothing_is_left(self, graded):
        assert left_behind(graded.run, graded.folder) == [] and graded.run.status == 3

    def test_nothing_tells_what_students_do_not_get(self, graded):
        """Neither a record's words nor a page has the transfer answer, another's work, or the seed of hidden inputs."""
        for record in graded.records.values():
            for mark in record.marks:
                lines = {line.strip() for line in mark.reason.splitlines()}
                who = record.student, mark.exercise, graded.hostile.get(record.student, {}).get(mark.exercise)
                assert len(lines & answers()[LAB.number]) < 3, who
                assert str(SEED) not in mark.reason, who
                assert f"{ROOT / 'tests'}" not in mark.reason, who
                assert len(mark.reason) < 20_000, who
        pages = [path for path in graded.run.out.rglob("*") if path.suffix in (".html", ".csv", ".xml")]
        assert pages and not any(str(SEED) in path.read_text() for path in pages)

    def test_odd_files_have_a_row_each(self, graded):
        with open(graded.run.out / "grades.csv", newline="") as file:
            status = {row["id"]: row["status"] for row in csv.DictReader(file)}
        assert {status[name] for name in ("up", "loop", "pipe", "socket")} == {gradebook.UNREADABLE}
        assert {"'=cmd|'x'!A0", "'-rf", *map(named, ("new\nline", "\udcff\udcfe", "\u202egpj"))} <= {*status}
        assert status["all"] == gradebook.UNREADABLE and "folder" not in status  # a link, and a folder without files
