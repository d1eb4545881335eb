"""Test the command that grades a class: its refusals, its warnings, and the source of its points."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from labs_helpers import labs
from labs_helpers.grading import VERSION, class_run
from labs_helpers.grading import __main__ as command
from labs_helpers.grading.handout import folder as handout
from labs_helpers.grading.marks import Mark
from labs_helpers.grading.results.gradebook import load, save
from labs_helpers.labs import LABS, ROOT
from labs_helpers.launch.process import run
from tests.grading.test_gradebook import measured, notebook, rows_of


@pytest.fixture
def graded(monkeypatch, tmp_path):
    """graded(*options): the exit status over tmp_path/inbox, in which everybody has 5 points, and no jail runs."""
    measured(monkeypatch)
    monkeypatch.setattr(class_run, "marks", lambda *given: [Mark("00/0", 5, 5, "right")])

    def grade(*options):
        return command.main(["0", str(tmp_path / "inbox"), "--out", str(tmp_path / "out"), "--jobs", "1", *options])

    return grade


def refused(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    usage, *said = capsys.readouterr().err.strip().splitlines()
    assert usage.startswith("usage: ") and len(said) == 1
    return said[0]


def test_what_is_no_inbox_of_the_lab_is_refused_and_nothing_is_written(graded, tmp_path, capsys):
    out = ["--out", str(tmp_path / "out")]
    assert "no inbox is named: SUBMISSIONS=" in refused(capsys, ["00", "", *out])
    assert "holds the course itself" in refused(capsys, ["00", str(ROOT), *out])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options, said",
    [
        (["--due", "01.10.2026"], "'01.10.2026' is no time such as 2026-10-01T23:59"),
        (["--late", "10%/day"], "--late (LATE=) needs --due (DUE=)"),
        (["--due", "2026-10-01", "--late", "0.1"], "'0.1' is no share such as 10%/day"),
        (["--extensions", "bad.csv"], "bad.csv: due of ada: '4.10.' is no time such as 2026-10-01T23:59"),
        (["--class", "absent.csv"], "absent.csv: No such file or directory"),
    ],
)
def test_usage_is_told_in_a_line(graded, tmp_path, capsys, options, said, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("id,due\nada,4.10.\n")
    notebook(tmp_path / "inbox" / "ada.ipynb")
    assert said in refused(capsys, ["00", str(tmp_path / "inbox"), "--out", str(tmp_path / "out"), *options])


def test_a_class_that_is_nearly_all_late_is_doubted(graded, tmp_path, capsys):
    due = datetime(2026, 10, 1, 12, tzinfo=UTC)
    for number in range(6):
        notebook(tmp_path / "inbox" / f"s{number}.ipynb", due.timestamp() + (9 if number else -9))
    assert graded("--due", due.isoformat()) == 0
    assert "5 of 6 files were changed after DUE=" in capsys.readouterr().err
    os.utime(tmp_path / "inbox" / "s1.ipynb", (0, 0))
    assert graded("--due", due.isoformat()) == 0 and "DUE=" not in capsys.readouterr().err


def test_overrides_of_the_last_grades_are_not_lost_in_silence(graded, tmp_path, capsys):
    for student in ("ada", "bob"):
        notebook(tmp_path / "inbox" / f"{student}.ipynb")
    (tmp_path / "mine.csv").write_text("id,exercise,points\nada,0/1,8.5\n")
    assert graded("--overrides", str(tmp_path / "mine.csv")) == 0
    assert [row["total"] for row in rows_of(tmp_path / "out/grades.csv")] == ["13.5", "5"]
    assert "OVERRIDES=" not in capsys.readouterr().err
    assert graded() == 0 and "mine.csv, and these do not: name it" in capsys.readouterr().err
    assert [row["total"] for row in rows_of(tmp_path / "out/grades.csv")] == ["5", "5"]
    assert graded() == 0 and "OVERRIDES=" not in capsys.readouterr().err


def test_a_late_day_counts_from_the_students_own_due_time_and_a_comment_is_told(graded, tmp_path):
    due = datetime(2026, 10, 1, 12, tzinfo=UTC)
    for number, student in enumerate(("ada", "bob", "cy")):
        notebook(tmp_path / "inbox" / f"{student}.ipynb", due.timestamp() + 86_400 * number + 9)
    tables = {"class": "id,name,due,comment\nada,A,,Well <done>\nbob,B,2026-10-02T12:00+00:00,\ncy,C,,\ndi,D,,Ill\n",
              "extensions": "id;due\ncy;2026-10-04T12:00+00:00\n",
              "overrides": "id,exercise,points,comment\nada,0/1,1,Nice\nada,,,Come and see me\n"}  # fmt: skip
    options = []
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
        options += [f"--{name}", str(tmp_path / f"{name}.csv")]
    assert graded("--due", due.isoformat(), *options) == 3
    assert {row["id"]: row["late days"] for row in rows_of(tmp_path / "out/grades.csv")} == {
        "ada": "1", "bob": "1", "cy": "0", "di": "0",
    }  # fmt: skip
    page = (tmp_path / "out/feedback/ada.html").read_text()
    for said in ("Well &lt;done&gt;", "0/1: Nice", "Come and see me"):
        assert f"Your instructor says: {said}" in page.replace("&#39;", "'")
    assert "Ill" in (tmp_path / "out/feedback/di.html").read_text()


def test_the_gradebook_of_canvas_is_filled_in_and_an_older_one_goes(graded, tmp_path):
    notebook(tmp_path / "inbox" / "ada.ipynb")
    (tmp_path / "export.csv").write_text("Student,ID,SIS Login ID,Section,Lab 0 (7)\nAda,1,,,\n")
    assert graded("--canvas", str(tmp_path / "export.csv")) == 0
    assert rows_of(tmp_path / "out/grades-canvas.csv")[0]["Lab 0 (7)"] == "5"
    assert "grades-canvas.csv" in (tmp_path / "out/index.html").read_text()
    assert graded() == 0 and not (tmp_path / "out/grades-canvas.csv").exists()


def test_records_of_an_older_version_are_told_and_what_changes(graded, tmp_path, capsys, monkeypatch):
    for student in ("ada", "bob"):
        notebook(tmp_path / "inbox" / f"{student}.ipynb")
    assert graded() == 0 and "older version" not in capsys.readouterr().err
    record = load(tmp_path / "out", "ada")
    assert record.version == VERSION and record.course
    save(tmp_path / "out", replace(record, version=VERSION - 1, marks=(Mark("00/0", None, 5, "review"),)))
    assert graded() == 3 and "1 of 2 records were made by an older version" in capsys.readouterr().err
    assert graded("--regrade") == 0
    said = capsys.readouterr()
    assert said.out.endswith("Points before and after:\nada 00/0: to be looked at → 5 points\n")
    assert "older version" not in said.err
    assert graded("--regrade") == 0 and "No points have changed." in capsys.readouterr().out


def test_what_is_no_notebook_of_the_lab_is_unreadable_and_says_what_it_is(graded, tmp_path, capsys, monkeypatch):
    monkeypatch.undo()
    measured(monkeypatch)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "ada.ipynb").write_bytes(LABS[0].path.read_bytes())
    (tmp_path / "inbox" / "bob.ipynb").write_bytes(LABS[4].path.read_bytes())
    (tmp_path / "inbox" / "cy.pdf").touch()
    assert graded() == 3 and "checking the course's own answers" in capsys.readouterr().err
    assert {row["id"]: row["status"] for row in rows_of(tmp_path / "out/grades.csv")} == {
        "ada": "graded", "bob": "unreadable", "cy": "unreadable",
    }  # fmt: skip
    look = {row["id"]: row["what"] for row in rows_of(tmp_path / "out/review.csv")}
    assert look["bob"] == "this is lab 04's notebook, and not lab 00's" and "handed in, but cy.pdf" in look["cy"]


def test_an_answer_in_a_text_cell_has_a_row(graded, tmp_path, monkeypatch):
    monkeypatch.undo()
    measured(monkeypatch)
    given = json.loads(LABS[0].path.read_text())
    name = LABS[0].exercises()[0].trial.__name__
    cell = {"cell_type": "markdown", "metadata": {}, "source": f"def {name}(*given):\n    return 1\n"}
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "ada.ipynb").write_text(json.dumps(given | {"cells": [*given["cells"], cell]}))
    assert graded() == 3
    (row,) = rows_of(tmp_path / "out/review.csv")
    assert "in a text cell" in row["what"] and row["flags"] == "in-text-cell"
    assert "in a text cell" in (tmp_path / "out/feedback/ada.html").read_text()


def test_a_lab_is_called_by_its_number_with_or_without_a_zero(tmp_path, monkeypatch):
    assert labs.lab("2") is labs.lab("02") is LABS[2]
    asked = []
    monkeypatch.setattr(handout, "make_handout", lambda chosen, *given, **more: asked.append(chosen) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        handout.main(["2", "4"])
    assert asked == [[LABS[2], LABS[4]]]
    for given in ("LAB=2", "LABS=2"):
        said = run(["make", "-n", "-o", ".venv/.set-up", "handout", given], timeout=100, cwd=ROOT)
        assert "labs_helpers.grading.handout 2" in said
