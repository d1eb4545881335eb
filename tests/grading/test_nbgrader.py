"""Test that every lab is a valid nbgrader assignment: nbgrader itself releases, validates and grades it."""

import csv
import json
import os
import re
import sys

import nbformat
import pytest

from labs_helpers.authoring.cells import grade_id
from labs_helpers.course import own_copies
from labs_helpers.labs import LABS, ROOT, lab
from labs_helpers.launch.process import run
from tests.notebooks.labs import by_grade_id, shipped, solved, without_demonstrations

NBGRADER = ROOT / ".venv-nbgrader/bin/nbgrader"
# Else nbgrader puts a line of its own where an answer stood, and takes the marks away.
CONFIG = r"""c = get_config()
c.ClearSolutions.code_stub = {"python": "### BEGIN SOLUTION\n...\n### END SOLUTION"}
c.ExecutePreprocessor.timeout = 100
"""

every_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.path.stem)


@every_lab
def test_the_marks_of_a_solution_stand_in_exercise_cells_alone_and_in_pairs(lab):
    exercises = {grade_id(exercise) for exercise in lab.exercises()}
    for cell in shipped(lab).cells:
        marks = re.findall(r"(BEGIN|END) SOLUTION", cell.source)
        pairs = len(marks) // 2 if cell.metadata.get("nbgrader", {}).get("grade_id") in exercises else 0
        assert marks == ["BEGIN", "END"] * pairs, cell.source


def test_the_instructors_page_has_the_same_configuration():
    assert CONFIG.partition("\n")[2] in (ROOT / "INSTRUCTORS.md").read_text()


@pytest.fixture
def nbgrader(tmp_path):
    """nbgrader(command, …): what it prints, run in a course of its own whose kernels have this environment."""
    if not NBGRADER.exists():
        pytest.skip("there is no .venv-nbgrader; make nbgrader makes it")
    course = tmp_path / "course"
    (course / "kernels/python3").mkdir(parents=True)
    kernel = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    path = os.pathsep.join([str(NBGRADER.parent), os.environ["PATH"]])  # it calls alembic
    spec = {"argv": kernel, "display_name": "Python 3", "language": "python"}
    (course / "kernels/python3/kernel.json").write_text(json.dumps(spec))
    (course / "nbgrader_config.py").write_text(CONFIG)

    def call(*command, **env):
        own = {"JUPYTER_PATH": str(course), "HOME": str(tmp_path), "JUPYTER_PREFER_ENV_PATH": "0", "PATH": path}
        return run([NBGRADER, *command], timeout=500, cwd=course, env=os.environ | own | env)

    call.course = course
    return call


def release(nbgrader, lab, notebook):
    """Has `notebook` released as the assignment of `lab`; the notebook that students get."""
    name = lab.path.stem
    own_copies.write(notebook, nbgrader.course / "source" / name / lab.notebook)
    nbgrader("generate_assignment", name)
    return nbformat.read(nbgrader.course / "release" / name / lab.notebook, as_version=4)


@pytest.mark.soak
@every_lab
def test_a_released_lab_is_the_lab_and_valid(nbgrader, lab, tmp_path):
    ours = by_grade_id(shipped(lab))
    theirs = by_grade_id(release(nbgrader, lab, solved(lab)))
    assert {name: cell.source for name, cell in theirs.items()} == {name: cell.source for name, cell in ours.items()}
    assert sum(cell.metadata.nbgrader.get("points", 0) for cell in theirs.values()) == sum(
        exercise.points for exercise in lab.exercises()
    )
    if lab.number not in ("00", "06"):  # one of kernels, one of ranks: the checks of all are run by test_solved
        return
    own_copies.write(without_demonstrations(solved(lab)), tmp_path / lab.notebook)
    assert "Success! Your notebook passes all the tests." in nbgrader("validate", tmp_path / lab.notebook)


@pytest.mark.soak
@pytest.mark.parametrize("number", ["00", "02"])
def test_what_is_solved_gets_all_points_and_what_is_untouched_none(nbgrader, number):
    one = lab(number)
    name = one.path.stem
    release(nbgrader, one, shipped(one))
    for student, made in (("solved", solved), ("untouched", shipped)):
        own_copies.write(
            without_demonstrations(made(one)), nbgrader.course / "submitted" / student / name / one.notebook
        )
    nbgrader("autograde", name, LABS_GRADING="1")
    nbgrader("export")
    with open(nbgrader.course / "grades.csv", newline="") as file:
        rows = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    points = sum(exercise.points for exercise in one.exercises())
    assert rows == {"solved": (points, points), "untouched": (0, points)}
