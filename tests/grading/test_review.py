"""Test review.csv: one row per student and reason, and an instructor's decisions, which later runs keep."""

import csv

import pytest

from labs_helpers.grading import __main__ as command
from labs_helpers.grading import class_run
from labs_helpers.grading.marks import Mark
from labs_helpers.grading.results.flags import SAME
from labs_helpers.grading.results.gradebook import REVIEW, Record, load
from labs_helpers.grading.results.review import looks
from tests.grading.test_gradebook import measured, notebook, rows_of


@pytest.fixture
def graded(monkeypatch, tmp_path):
    """graded(*options): the exit status; of ada, whose 00/0 is to be looked at. graded.text: her answer."""
    measured(monkeypatch)

    def marks(*given):
        first = Mark("00/0", None, 5, "review", "line 2: open", source=run.text)
        return [first, *(Mark(f"00/{n}", 10, 10, "right", flags=("cell-twice",), source="x") for n in (1, 2))]

    def run(*options):
        return command.main(["0", str(tmp_path / "inbox"), "--out", str(tmp_path / "out"), "--regrade", *options])

    run.text = "def f(): ..."
    monkeypatch.setattr(class_run, "marks", marks)
    notebook(tmp_path / "inbox" / "ada.ipynb")
    return run


@pytest.fixture
def write(tmp_path):
    """write(exercise=accept): the columns of review.csv's row about that exercise, as a spreadsheet saves them."""

    def change(path="out/review.csv", separator=",", also="", **accept):
        rows = rows_of(tmp_path / "out/review.csv")
        for row in rows:
            row["accept"] = accept.get(row["exercise"][-1:].replace("0", "zero").replace("2", "two"), row["accept"])
            row |= {"My note": also} if also else {}
        with open(tmp_path / path, "w", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]), delimiter=separator)
            table.writeheader()
            table.writerows(rows)
        return tmp_path / path

    return change


@pytest.mark.parametrize("accept, points", [("yes", 5), ("2.5", 2.5), ("2,5", 2.5), ("No", 0)])
def test_what_is_accepted_has_points_as_long_as_the_answer_is_the_same(graded, write, tmp_path, accept, points):
    assert graded() == 3 and rows_of(tmp_path / "out/grades.csv")[0]["total"] == "20"
    write(zero=accept, separator=";")
    assert graded() == 3
    (row,) = rows_of(tmp_path / "out/grades.csv")
    assert float(row["00/0"]) == points and row["status"] == "graded" and row["accepted"] == f"00/0 {accept.lower()}"
    assert load(tmp_path / "out", "ada").accepted == (row["accepted"],)
    graded.text = "def f(): return 1"
    assert graded() == 3
    (row,) = rows_of(tmp_path / "out/grades.csv")
    assert (row["00/0"], row["accepted"], load(tmp_path / "out", "ada").accepted) == ("", "", ())
    rows = rows_of(tmp_path / "out/review.csv")
    assert [row["accept"] for row in rows] == ["", "", accept.lower()]  # the old one is kept, at the end
    graded.text = "def f(): ..."
    assert graded() == 3 and float(rows_of(tmp_path / "out/grades.csv")[0]["00/0"]) == points
    assert len(rows_of(tmp_path / "out/review.csv")) == 2


def test_a_copy_counts_and_what_the_instructor_wrote_stays(graded, write, tmp_path):
    graded()
    copy = write("mine.csv", zero="yes", two="yes", also="=seen")
    assert graded("--accept", str(copy)) == 0 and graded() == 0  # nothing is left to decide
    rows = rows_of(tmp_path / "out/review.csv")
    assert [(row["accept"], row["my note"]) for row in rows] == [("yes", "'=seen")] * 2
    assert rows[1]["exercise"] == "00/1 00/2"
    write("mine.csv", zero="")
    assert graded("--accept", str(copy)) == 3 and rows_of(tmp_path / "out/grades.csv")[0]["status"] == "review"
    (tmp_path / "inbox/ada.ipynb").unlink()
    notebook(tmp_path / "inbox" / "bob.ipynb")
    assert graded() == 3
    kept = [row for row in rows_of(tmp_path / "out/review.csv") if row["id"] == "ada"]
    assert {row["my note"] for row in kept} == {"'=seen"}


def test_rows_about_one_answer_agree_and_rows_of_ones_own_stay_once(graded, write, tmp_path, capsys):
    graded()
    text = write(zero="yes").read_text().splitlines()
    row = next(line for line in text if ",00/0," in line)
    copy = tmp_path / "mine.csv"
    copy.write_text(
        "\n".join([text[0] + ",note", row + ",", row.replace(",yes,", ",,") + ",seen", "ada,,,,,,,ask her"])
    )
    for _ in range(2):
        assert graded("--accept", str(copy)) == 3
    rows = rows_of(tmp_path / "out/review.csv")
    assert [(row["accept"], row["note"]) for row in rows] == [("yes", "seen"), ("", ""), ("", "ask her")]
    copy.write_text("\n".join([text[0], row, row.replace(",yes,", ",no,")]))
    with pytest.raises(SystemExit):
        graded("--accept", str(copy))
    assert "line 3: accept is no, and yes in another row about this answer" in capsys.readouterr().err


def test_overrides_win(graded, write, tmp_path):
    graded()
    write(zero="yes")
    (tmp_path / "mine.csv").write_text("id,exercise,points\nada,0/0,1\n")
    assert graded("--overrides", str(tmp_path / "mine.csv")) == 3
    assert rows_of(tmp_path / "out/grades.csv")[0]["00/0"] == "1"


@pytest.mark.parametrize("accept, said", [("maybe", "and not maybe"), ("6", "accept is 6, and 00/0 has only 5 points")])
def test_what_cannot_be_accepted_is_told_and_nothing_is_written(graded, write, tmp_path, capsys, accept, said):
    graded()
    text = write(zero=accept).read_text()
    with pytest.raises(SystemExit):
        graded()
    assert said in capsys.readouterr().err and (tmp_path / "out/review.csv").read_text() == text


def test_what_is_undecided_is_looked_at_first_and_one_reason_is_one_row():
    def mark(number, points, *flags, status="wrong"):
        return Mark(f"00/{number}", points, 10, status, "why", flags)

    odd = (*(mark(n, 10, SAME, status="right") for n in (0, 5, 6)), mark(1, 0, "hidden-values"), mark(2, None))
    own = (mark(3, 5, "hidden-values", status="override"), mark(4, 0, "hidden-values"))
    records = [Record("ada", "missing", reason="nothing"), Record("bob", REVIEW, (*odd, *own)),
               Record("cy", "unreadable", reason="empty")]  # fmt: skip
    rows = looks(records)
    assert [(row["id"], row["exercise"]) for row in rows] == [
        ("bob", "00/2"), ("cy", ""), ("bob", "00/1"), ("bob", "00/4"), ("ada", ""), ("bob", "00/0 00/5 00/6"),
        ("bob", "00/3"),
    ]  # fmt: skip
    assert "course's own answer" in rows[5]["what"] and rows[5]["status"] == "right"
