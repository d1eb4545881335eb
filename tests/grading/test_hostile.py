"""Hostile answers, notebooks and files: none gets points by itself, each costs its own exercise alone, nothing of it is
left, and nothing that it says tells what students do not get."""

from __future__ import annotations

import csv
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from labs_helpers.grading import gradebook
from labs_helpers.grading.gradebook import Record
from labs_helpers.grading.inbox import students
from labs_helpers.grading.jail import why_not
from labs_helpers.grading.notebook_file import Unreadable
from labs_helpers.grading.submission import read_submission
from labs_helpers.labs import ROOT
from tests.grading.hostile import HOSTILE
from tests.grading.hostile_notebooks import FIRST, LAB, NOTEBOOKS, notebook, odd_files, odd_zip
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
        assert "'=cmd|'x'!A0" in status and "new\nline" in status and r"\udcff\udcfe" in status
        assert not {"all", "folder"} & {*status}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_hostile_notebook_is_read(tmp_path, name):
    (tmp_path / "ada.ipynb").write_text(notebook(name))
    found = read_submission(tmp_path / "ada.ipynb", LAB)
    assert len(found) == len(EXERCISES) and found[0].shipped.id == FIRST.id


@pytest.mark.parametrize("text", ['{"cells": 1e999}', '{"cells": [{}]}', "NaN", f'{{"cells": {"9" * 5000}}}', "\ud800",
                                  '{"cells": {"a": 1}}', '{"worksheets": [1, {"cells": 3}]}', "\0" * 100])  # fmt: skip
def test_what_is_no_notebook_is_told(tmp_path, text):
    (tmp_path / "ada.ipynb").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(Unreadable):
        read_submission(tmp_path / "ada.ipynb", LAB)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_odd_zip_stops_nobody_and_stays_in_its_folder(tmp_path):
    there = odd_zip(tmp_path / "in.zip")
    found = students(tmp_path / "in.zip", tmp_path / "out" / "inbox")
    assert {*there} <= {*found} and "z" not in found
    (tmp_path / "in.zip").unlink()
    assert all(path.is_relative_to(tmp_path / "out") for path in tmp_path.rglob("*"))
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))
    for student in ("link", "bomb"):
        with pytest.raises(Unreadable):
            read_submission(found[student].path, LAB)
    assert found["bomb"].path.stat().st_size < 21 * 2**20


def test_a_damaged_member_of_a_zip_is_an_empty_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("ada.ipynb", "x" * 1000)
        archive.writestr("bob.ipynb", "{}")
    content = (tmp_path / "in.zip").read_bytes()
    (tmp_path / "in.zip").write_bytes(content.replace(b"x" * 1000, b"y" * 1000))
    found = students(tmp_path / "in.zip", tmp_path / "out")
    assert found["ada"].path.read_bytes() == b"" and found["bob"].path.read_bytes() == b"{}"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_that_holds_too_much_is_told(tmp_path, monkeypatch):
    from labs_helpers.grading import inbox

    monkeypatch.setattr(inbox, "MOST_IN_ALL", 2**20)
    odd_zip(tmp_path / "in.zip")
    with pytest.raises(inbox.BadInbox, match="MB of them"):
        students(tmp_path / "in.zip", tmp_path / "out")
