"""Test a class's results: stored per student, complete at any moment, and exported as tables that others can read."""

import csv
import io
import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest

from labs_helpers.grading import __main__ as command
from labs_helpers.grading import class_run
from labs_helpers.grading.marks import Mark
from labs_helpers.grading.reading.inbox import students
from labs_helpers.grading.reading.tables import load_overrides
from labs_helpers.grading.results import gradebook
from labs_helpers.grading.results import publish as results
from labs_helpers.grading.results.gradebook import GRADED, LATE, REVIEW, Record, load, record_path, save
from labs_helpers.grading.results.review import looks, review_csv
from labs_helpers.labs import LABS, ROOT
from labs_helpers.launch.process import run

LAB = LABS[0]
MARKS = (
    Mark("00/0", 5, 5, "right", cases=("a", "b")),
    Mark("00/1", None, 10, "review", "line 2: open", ("cell-twice",)),
)


def notebook(path, at=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": path.name}]}))
    if at is not None:
        os.utime(path, (at, at))
    return path


def rows_of(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_files_and_folders_are_students(tmp_path):
    for name in ("ada.ipynb", "bob_02_fused_gemm.ipynb", "cy_1_assignsubmission_file_/x.ipynb", ".hidden/y.ipynb",
                 "__MACOSX/z.ipynb", "notes.txt"):  # fmt: skip
        notebook(tmp_path / "inbox" / name)
    (tmp_path / "inbox" / "folder.ipynb").mkdir()
    old, new = (notebook(tmp_path / "inbox" / "eve" / f"{at}.ipynb", at) for at in (1000, 2000))
    found = students(tmp_path / "inbox", tmp_path / "unpacked")
    assert sorted(found) == ["ada", "bob", "cy", "eve", "notes"]
    assert found["notes"].instead == "notes.txt" and not found["ada"].instead
    assert found["eve"].path == new and found["eve"].others == (old,)
    assert found["eve"].at == datetime.fromtimestamp(2000, UTC)


@pytest.mark.parametrize("student", ["ada", "a/../b", "..", "Ä b", "=1+1", "", "ж" * 300])
def test_a_record_is_found_again_under_any_name(tmp_path, student):
    record = Record(student, REVIEW, MARKS, "digest", 2, flags=("2 files",))
    save(tmp_path, record)
    assert load(tmp_path, student) == record and record_path(tmp_path, student).parent == tmp_path / "records"
    assert len(list(tmp_path.rglob("*"))) == 2


def test_no_two_students_share_a_record():
    names = ["ada", ".ada", "=ada", "..ada", "a_da", "a/da", "", ".", "=", "ж" * 300, "ж" * 301]
    assert len({gradebook.record_path(Path(), name) for name in names}) == len(names)


def test_half_a_record_is_none(tmp_path):
    save(tmp_path, Record("ada", GRADED, MARKS))
    path = record_path(tmp_path, "ada")
    text = path.read_text()
    for end in range(0, len(text) - 1, 7):
        path.write_text(text[:end])
        assert load(tmp_path, "ada") is None
    assert load(tmp_path, "bob") is None


def test_grades_say_what_is_open_and_overrides_win(tmp_path):
    records = [Record("ada", REVIEW, MARKS, late_days=2), Record("=cmd", GRADED, MARKS[:1])]
    rows = list(csv.DictReader(io.StringIO(gradebook.grades_csv(records, {"ada": "@Ada"}, ["00/0", "00/1"], 0.1))))
    assert rows[0] == {"id": "ada", "name": "'@Ada", "status": "review", "late days": "2", "00/0": "5", "00/1": "",
                       "raw": "5", "penalty": "1", "total": "4", "accepted": ""}  # fmt: skip
    assert rows[1]["id"] == "'=cmd" and rows[1]["00/1"] == "0"
    (look,) = csv.DictReader(io.StringIO(review_csv(looks(records))))
    assert (look["id"], look["exercise"], look["flags"]) == ("ada", "00/1", "cell-twice")
    assert "is in the notebook more than once" in look["what"] and "line 2: open. Read it" in look["what"]
    assert look["what"].endswith("write yes, no or 0 to 10 points into the column accept of review.csv.")
    (tmp_path / "o.csv").write_text("id,exercise,points\nada,00/1,7.5\n")
    after = gradebook.overridden(records[0], load_overrides(tmp_path / "o.csv", {"00/1": 10}, ["ada"]), {"00/1": 10})
    assert after.status == LATE and after.raw == 12.5 and after.marks[1].status == "override"
    nothing = Record("bob", "missing", reason="nothing was handed in")
    given = gradebook.overridden(nothing, {("bob", "00/1"): 3, ("ada", "00/1"): 4}, {"00/1": 10})
    assert given.raw == 3 and given.marks[0].most == 10


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", " =1", "\t=1", "＝1", "'=1", "\n@x"])
def test_no_cell_of_a_table_is_a_formula_or_hides_what_it_is(text):
    odd = f"{text}\x1b]0;x\x07\u202e\r"
    record = Record("ada", REVIEW, (Mark("00/0", None, 5, "review", odd, (odd,)),), reason=odd, flags=(odd,))
    tables = (
        gradebook.grades_csv([record, Record(text, GRADED)], {"ada": odd}, ["00/0"], 0),
        review_csv(looks([record])),
    )
    assert not {"\x1b", "\x07", "\u202e"} & {*"".join(tables)}
    cells = [cell for table in tables for row in csv.reader(io.StringIO(table)) for cell in row]
    assert not [cell for cell in cells if cell.strip().startswith(("=", "+", "-", "@", "＝"))]


def test_a_mark_for_spreadsheets_makes_no_two_ids_one():
    students = ["=1", "'=1", "''=1", " =1", "' =1", "1"]
    rows = csv.DictReader(io.StringIO(gradebook.grades_csv([Record(one, GRADED) for one in students], {}, [], 0)))
    assert len({row["id"] for row in rows}) == len(students)


def measured(monkeypatch, why_not=""):
    """As on a machine with a jail, or one where this is why there is none; nbval's run has tests of its own."""
    monkeypatch.setattr(command.kinds, "BUBBLEWRAP", replace(command.kinds.BUBBLEWRAP, why_not=lambda: why_not))
    monkeypatch.setattr(command, "course_answers", lambda *given: {})
    monkeypatch.setattr(results, "junit", lambda *given: [])


@pytest.fixture
def graded(monkeypatch, tmp_path):
    """graded(*options): the command's exit status over tmp_path/inbox; graded.asked: whose files were graded."""
    asked = []

    def marks(path, lab, measure, seed, limits, judge):
        asked.append(path.stem)
        if path.stem == "interrupted":
            raise KeyboardInterrupt
        if path.stem == "bug":
            raise KeyError("x")
        return [Mark("00/0", 5, 5, "right")]

    monkeypatch.setattr(class_run, "marks", marks)
    measured(monkeypatch)

    def run(*options):
        return command.main(["00", str(tmp_path / "inbox"), "--out", str(tmp_path / "out"), "--jobs", "1", *options])

    run.asked = asked
    return run


def test_nobody_is_graded_twice_and_a_new_file_is_graded_again(graded, tmp_path):
    for name in ("ada", "bob"):
        notebook(tmp_path / "inbox" / f"{name}.ipynb")
    assert graded() == 0 and sorted(graded.asked) == ["ada", "bob"]
    assert graded() == 0 and len(graded.asked) == 2
    (tmp_path / "inbox" / "bob.ipynb").write_text("{}")
    assert graded() == 0 and graded.asked[2:] == ["bob"]
    assert graded("--regrade") == 0 and len(graded.asked) == 5
    assert [row["total"] for row in rows_of(tmp_path / "out" / "grades.csv")] == ["5", "5"]


def test_one_student_is_graded_again(graded, tmp_path, capsys):
    for name in ("ada", "bob", "cy"):
        notebook(tmp_path / "inbox" / f"{name}.ipynb")
    assert graded("--only", "ada,bob") == 3 and sorted(graded.asked) == ["ada", "bob"]
    assert [row["status"] for row in rows_of(tmp_path / "out" / "grades.csv")] == ["graded", "graded", "not graded yet"]
    assert graded() == 0 and graded.asked[2:] == ["cy"]
    assert graded("--only", "bob") == 0 and graded.asked[3:] == ["bob"]
    with pytest.raises(SystemExit):
        graded("--only", "bob,eve")
    assert "nothing was handed in by eve" in capsys.readouterr().err


def test_a_class_keeps_its_seed(graded, tmp_path):
    notebook(tmp_path / "inbox" / "ada.ipynb")
    seeds = []
    for options in ((), (), ("--seed", "7"), ()):
        assert graded(*options) == 0
        seeds.append(int((tmp_path / "out" / "seed").read_text()))
    assert seeds[0] == seeds[1] and seeds[2:] == [7, 7]


def test_what_was_graded_before_an_interrupt_is_kept(graded, tmp_path):
    for name in ("ada", "interrupted"):
        notebook(tmp_path / "inbox" / f"{name}.ipynb")
    with pytest.raises(KeyboardInterrupt):
        graded()
    assert load(tmp_path / "out", "ada").status == GRADED


def test_an_interrupt_ends_the_jails_of_those_at_work(monkeypatch, tmp_path):
    measured(monkeypatch)
    begun, ended = Event(), Event()

    def marks(path, lab, measure, seed, limits, judge):
        if path.stem == "ada":
            begun.wait(100)
            raise KeyboardInterrupt
        begun.set()
        while not judge.keywords["over"]():
            ended.wait(0.01)
        ended.set()
        return []

    monkeypatch.setattr(class_run, "marks", marks)
    for name in ("ada", "bob"):
        notebook(tmp_path / "inbox" / f"{name}.ipynb")
    with pytest.raises(KeyboardInterrupt):
        command.main(["00", str(tmp_path / "inbox"), "--out", str(tmp_path / "out"), "--jobs", "2"])
    assert ended.wait(100) and load(tmp_path / "out", "bob") is None


def test_a_graders_own_error_is_no_zero(graded, tmp_path, capsys):
    notebook(tmp_path / "inbox" / "bug.ipynb")
    assert graded() == 1 and "1 grader-error" in capsys.readouterr().out
    assert rows_of(tmp_path / "out" / "review.csv")[0]["what"] == "KeyError: 'x'"


def test_missing_unknown_and_late_are_listed(graded, tmp_path):
    due = datetime(2026, 10, 1, 12, tzinfo=UTC)
    notebook(tmp_path / "inbox" / "ada.ipynb", (due + timedelta(hours=25)).timestamp())
    notebook(tmp_path / "inbox" / "who.ipynb", due.timestamp())
    (tmp_path / "class.csv").write_text("id,name\nada,Ada\nbob,Bob\n")
    given = ["--class", str(tmp_path / "class.csv"), "--due", due.isoformat(), "--late", "10%/day"]
    assert graded(*given) == 3
    found = {row["id"]: row for row in rows_of(tmp_path / "out" / "grades.csv")}
    assert (found["ada"]["late days"], found["ada"]["total"]) == ("2", "4")
    assert found["bob"]["status"] == "missing" and found["who"]["late days"] == "0"
    look = {row["id"]: row["what"] for row in rows_of(tmp_path / "out" / "review.csv")}
    assert look == {"bob": "nothing was handed in", "who": "not in the class"}


def test_pages_are_of_those_in_the_table_and_records_are_kept(graded, tmp_path):
    for name in ("ada", "bob", "cy"):
        notebook(tmp_path / "inbox" / f"{name}.ipynb")
    assert graded() == 0
    for name in ("bob", "cy"):
        (tmp_path / "inbox" / f"{name}.ipynb").unlink()
    (tmp_path / "class.csv").write_text("id\nada\ncy\n")
    assert graded("--class", str(tmp_path / "class.csv")) == 3
    out = tmp_path / "out"
    assert [row["id"] for row in rows_of(out / "grades.csv")] == ["ada", "cy"]
    assert [path.name for path in (out / "feedback").iterdir()] == ["ada.html"]
    assert sorted(path.stem for path in (out / "records").iterdir()) == ["ada", "bob", "cy"]
    for name in ("bob", "cy"):
        notebook(tmp_path / "inbox" / f"{name}.ipynb")
    assert graded() == 0 and len(graded.asked) == 3 and len([*(out / "feedback").iterdir()]) == 3


def test_without_nbval_there_is_no_older_report_either(graded, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "junit", lambda out, *given: (out / "junit.xml").write_text("x") and [])
    notebook(tmp_path / "inbox" / "ada.ipynb")
    assert graded() == 0 and (tmp_path / "out" / "junit.xml").exists()
    assert "junit.xml" in (tmp_path / "out" / "index.html").read_text()
    assert graded("--no-nbval") == 0 and not (tmp_path / "out" / "junit.xml").exists()
    assert "junit.xml" not in (tmp_path / "out" / "index.html").read_text()
    assert "--no-nbval" in run(
        ["make", "-n", "-o", ".venv/.set-up", "grade", "LAB=00", "NBVAL=no"], timeout=100, cwd=ROOT
    )


def test_usage_and_a_machine_without_a_jail(graded, tmp_path, monkeypatch, capsys):
    for words, said in ((["99", "x"], "there is no lab '99'"), (["00", str(tmp_path / "absent")], "neither a folder")):
        with pytest.raises(SystemExit) as ended:
            command.main(words)
        assert ended.value.code == 2 and said in capsys.readouterr().err
    measured(monkeypatch, "bwrap is not installed")
    assert command.main(["00", str(tmp_path)]) == 4 and "bwrap is not installed" in capsys.readouterr().err
