"""Test that `make check` gives a student's own notebook the same points for the public checks as grading does."""

import json
import os
import re
import sys

import pytest

from labs_helpers import labs
from labs_helpers.authoring.references import solved_cell as solution
from labs_helpers.course.scoreboard import points_of
from labs_helpers.course.stub import cell_of
from labs_helpers.grading import at_home
from labs_helpers.grading.cases import cases_in_all
from labs_helpers.grading.handout.folder import make_handout
from labs_helpers.launch.process import run

LAB = labs.lab("00")


@pytest.fixture
def saved(tmp_path):
    """saved({exercise's id: source}): a notebook of lab 00 with these answers."""

    def write(sources, lab=LAB, change=lambda cells: None):
        notebook = json.loads(lab.path.read_text())
        for cell in notebook["cells"]:
            mark = cell["metadata"].get("nbgrader", {}).get("grade_id", "").replace("-", "/", 1)
            cell["source"] = sources.get(mark, cell["source"])
        change(notebook["cells"])
        path = tmp_path / lab.notebook
        path.write_text(json.dumps(notebook))
        return path

    return write


def rows(printed):
    """exercise → what its line says, of a table as it is printed."""
    found = re.findall(r"^([○✓✗]) (\S+) +\w+ +([\d.]+) / +\d+  (.*)$", printed, re.MULTILINE)
    return {id: (mark, float(points), said) for mark, id, points, said in found}


def test_each_answer_has_its_points_and_its_words(saved, monkeypatch, capsys):
    one, two, three, four, five, six = LAB.exercises()
    sources = {e.id: solution(LAB, e) for e in (one, two, three, five, six)} | {four.id: "def f(:"}
    said = {one.id: ("right", 3, ""), two.id: ("wrong", 1, "n=7: off by one"), three.id: ("failed", 0, "KeyError: 1"),
            six.id: ("timeout", 2, "line 3: while True:")}  # fmt: skip

    def told(lab, job):
        if "source" not in job:
            return {"cases": 4 if job["exercise"] == two.id else None}
        status, passed, message = said[job["exercise"]]
        return {"status": status, "lines": ["a case"] * passed, "message": message}

    def change(cells):
        cells[:] = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade_id") != "00-4"]

    monkeypatch.setattr(at_home, "in_a_process", told)
    path = saved(sources, change=change)
    os.utime(path, (0, 0))
    assert at_home.main(["0", "--file", str(path)]) == 0
    printed = capsys.readouterr().out
    quarter = round(two.points / 4, 1)
    assert rows(printed) == {
        one.id: ("✓", one.points, "3 of 3"), two.id: ("✗", quarter, "1 of 4"), three.id: ("✗", 0, "0"),
        four.id: ("✗", 0, "0"), five.id: ("○", 0, "not attempted"), six.id: ("✗", 0, "2"),
    }  # fmt: skip
    assert f" {one.points + quarter:g} /  {sum(e.points for e in LAB.exercises())}\n" in printed
    for words in ("saved 1970-", "Ctrl+S", "n=7: off by one", "SyntaxError in line 1", "RESET=00/4", "KeyError: 1",
                  "in grading there may be", "inputs that they do not show"):  # fmt: skip
        assert words in printed.replace("\n  ", " ")


def test_an_answer_beside_its_marked_cell_is_told(saved, monkeypatch, capsys):
    """Of the first it is the only one; the second has one where it belongs too."""
    one, two, *_ = LAB.exercises()

    def change(cells):
        marks = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in cells]
        for exercise, mark in ((two, "00-1-check"), (one, "00-0-check")):
            source = f"def {exercise.trial.__name__}(*given):\n    return 1\n"
            cells.insert(marks.index(mark), {"cell_type": "code", "metadata": {}, "source": source})

    monkeypatch.setattr(at_home, "in_a_process", lambda *given: {"status": "right", "lines": ["a"], "message": ""})
    assert at_home.main(["0", "--file", str(saved({two.id: solution(LAB, two)}, change=change))]) == 0
    printed = capsys.readouterr().out.replace("\n  ", " ")
    assert rows(printed)[one.id][0] == "✓" and rows(printed)[two.id][0] == "✓"
    assert "It is graded from there. Its own cell is the one marked 00-0" in printed
    assert "put all into the cell marked 00-1" in printed and "into the cell marked 00-0" not in printed


def test_a_wrong_lab_or_file_is_told(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("no notebook")
    for words, said in (
        (["42"], "LAB=42: there is no lab '42'. The labs are: 00, 01"),
        ([""], "LAB=: there is no lab ''"),
        (["00", "--file", str(tmp_path / "absent")], "absent: there is no such file"),
        (["00", "--file", str(labs.LABS[4].path)], "this is lab 04's notebook, and not lab 00's"),
        (["00", "--file", str(tmp_path / "notes.txt")], "notes.txt: the file is not JSON, as a notebook is"),
    ):
        assert at_home.main(words) == 2 and said in capsys.readouterr().err


def test_points_for_a_part_are_never_all():
    assert [points_of(10, "✗", passed, 4) for passed in range(5)] == [0, 2.5, 5, 7.5, 7.5]
    assert points_of(10, "✗", 1, 3) == 3.3 and points_of(10, "✗", 2, None) == 0 == points_of(10, "✗", 0, 1)


def test_the_cases_are_those_of_the_reference_and_unknown_where_there_is_none(monkeypatch):
    first, *_, last = LAB.exercises()
    assert cases_in_all(LAB, first.id) == len(first.verify(first.reference))
    monkeypatch.setitem(sys.modules, LAB.transfer, None)
    assert cases_in_all(LAB, last.id) is None


@pytest.mark.soak
def test_a_right_and_a_dead_answer_are_tried_in_processes_of_their_own(saved, capsys):
    one, two, *_ = LAB.exercises()
    dead = "import os\nos._exit(3)"
    assert at_home.main(["00", "--file", str(saved({one.id: cell_of(one.reference), two.id: dead}))]) == 0
    printed = capsys.readouterr().out
    assert rows(printed)[one.id][:2] == ("✓", one.points) and rows(printed)[two.id][:2] == ("✗", 0)
    assert "ended without a word" in printed


@pytest.mark.soak
@pytest.mark.parametrize("number", ["00", "04", "06"])
def test_a_solved_lab_has_all_points_in_a_hand_out(saved, tmp_path, number):
    lab = labs.lab(number)
    folder, _ = make_handout([lab], tmp_path / "made")
    path = saved({one.id: solution(lab, one) for one in lab.exercises()}, lab)
    command = [sys.executable, "-m", "labs_helpers.grading.at_home", number, "--file", path]
    printed = run(command, timeout=600, cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)})
    assert {id: points for id, (_, points, _) in rows(printed).items()} == {e.id: e.points for e in lab.exercises()}
