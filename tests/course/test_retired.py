"""A retired exercise: whoever still asks for it reads that it was retired, and nothing fails."""

import dataclasses
import json

import pytest

from labs_helpers import labs
from labs_helpers.authoring.exports import export_files
from labs_helpers.course.lab_summary import summary
from labs_helpers.course.own_copies import copy_labs
from labs_helpers.course.reset import reset
from labs_helpers.course.retired import retired_in
from labs_helpers.course.revealed import reveal
from labs_helpers.course.scoreboard import SCORES
from labs_helpers.course.withheld import Withheld
from labs_helpers.grading import at_home
from labs_helpers.grading.reading.packed import BadInbox
from labs_helpers.grading.reading.tables import load_overrides
from labs_helpers.grading.results.feedback import feedback_page
from labs_helpers.grading.results.gradebook import GRADED, Record

GONE = labs.Retired("00/99", "old", "00/1 asks for it")
SAID = "– Exercise 00/99 was retired: 00/1 asks for it\n"
STUB = "def old(x):\n    ### BEGIN SOLUTION\n    ...\n    ### END SOLUTION\n"


@pytest.fixture
def lab(monkeypatch):
    """Lab 00 with a retired exercise, in the table of labs."""
    changed = dataclasses.replace(labs.lab("00"), retired=(GONE,))
    monkeypatch.setattr(labs, "LABS", (changed, *labs.LABS[1:]))
    return changed


def written(x):
    return x + 1


def unwritten(x):
    ### BEGIN SOLUTION
    ...
    ### END SOLUTION


def test_its_check_and_its_reveal_say_so(lab, capsys):
    find = retired_in("00")
    assert find("old")(written) is written and capsys.readouterr().out == SAID
    assert isinstance(find("old")(unwritten), Withheld) and capsys.readouterr().out == SAID
    reveal(find("old"))
    assert capsys.readouterr().out == SAID
    with pytest.raises(AttributeError, match="lab 00 has no exercise `new`"):
        find("new")


def test_the_modules_of_a_lab_find_it(lab):
    checks, exercises = sorted(export_files(lab).items())
    for _, text in (checks, exercises):
        assert "import retired_in\n" in text and text.endswith(']\n__getattr__ = retired_in("00")\n')
        assert '"retired_in"' not in text
    for path, text in export_files(dataclasses.replace(lab, retired=())).items():
        assert text == path.read_text()


def test_the_summary_make_check_and_the_students_page_say_so(lab, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(SCORES, "lab", "00")
    summary()
    assert SAID in capsys.readouterr().out
    notebook = json.loads(lab.path.read_text())
    marked = {"nbgrader": {"grade_id": "00-99", "solution": True}}
    notebook["cells"].append({"cell_type": "code", "metadata": marked, "source": STUB.replace("...", "return x")})
    (tmp_path / "mine.ipynb").write_text(json.dumps(notebook))
    assert at_home.main(["00", "--file", str(tmp_path / "mine.ipynb")]) == 0
    assert SAID in capsys.readouterr().out
    page = feedback_page(Record("ada", GRADED), "Ada", {}, {}, lab, 0.1)
    assert "Exercise 00/99 was retired: 00/1 asks for it" in page


def test_to_reset_it_or_to_give_it_points_is_an_error_that_says_so(lab, tmp_path):
    copy_labs(labs.NOTEBOOKS, tmp_path)
    with pytest.raises(ValueError, match="^RESET=00/99: Exercise 00/99 was retired"):
        reset("00/99", labs.NOTEBOOKS, tmp_path)
    (tmp_path / "o.csv").write_text("id,exercise,points\nada,00/99,1\n")
    with pytest.raises(BadInbox, match="line 2: Exercise 00/99 was retired"):
        load_overrides(tmp_path / "o.csv", {"00/1": 10}, ["ada"])


def test_no_exercise_has_the_id_or_the_name_of_a_retired_one():
    for lab in labs.LABS:
        retired, exercises = lab.retired, lab.exercises()
        assert not {one.id for one in retired} & {one.id for one in exercises}
        assert not {one.name for one in retired} & {one.trial.__name__ for one in exercises}
        assert all(one.id.startswith(f"{lab.number}/") for one in retired)
