"""Follow the instructors' page like a new instructor: run its five commands in an empty folder."""

import csv
import os
import re
import shlex
import zipfile

import nbformat
import pytest

from labs_helpers import labs
from labs_helpers.authoring.cells import grade_id
from labs_helpers.authoring.references import solved_cell
from labs_helpers.grading.jails.bubblewrap import why_not
from labs_helpers.labs import ROOT
from labs_helpers.launch.process import run
from tests.notebooks.labs import by_grade_id, shipped, solved

ADDRESS = "https://github.com/tile-to-cluster/tile-to-cluster"


def commands():
    """The lines of the page's first block."""
    return re.search(r"```sh\n(.*?)```", (ROOT / "INSTRUCTORS.md").read_text(), re.DOTALL)[1].splitlines()


def half_done(lab):
    """The notebook with the first exercise done, and the second one wrong."""
    notebook = shipped(lab)
    cells, (one, two, *_) = by_grade_id(notebook), lab.exercises()
    cells[grade_id(one)].source = solved_cell(lab, one)
    cells[grade_id(two)].source = f"def {two.trial.__name__}(x, y):\n    return x - y\n"
    return notebook


def test_there_are_five_and_the_first_has_the_courses_address():
    assert len(commands()) == 5 and ADDRESS in commands()[0] and ADDRESS in (ROOT / "README.md").read_text()


@pytest.mark.soak
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_from_an_empty_folder_to_a_gradebook(tmp_path):
    lab = labs.lab("00")
    handed_in = {"ada": solved(lab), "bob": half_done(lab), "cy": shipped(lab)}
    (tmp_path / "home/Downloads").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "home/Downloads/submissions.zip", "w") as archive:  # as Moodle packs them
        for number, (student, notebook) in enumerate(handed_in.items()):
            name = f"{student}_{number}_assignsubmission_file_/{lab.notebook}"
            archive.writestr(name, nbformat.writes(notebook))
    (tmp_path / "empty").mkdir()
    script = "\n".join(["set -e", *commands()]).replace(ADDRESS, f"{shlex.quote(str(ROOT))} tile-to-cluster")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    home = {"HOME": str(tmp_path / "home"), "PIP_CACHE_DIR": os.path.expanduser("~/.cache/pip")}
    said = run(["bash", "-c", script], timeout=1600, cwd=tmp_path / "empty", env=clean | home)
    course = tmp_path / "empty/tile-to-cluster"
    assert "3 graded" in said and (course / "build/handout/tile-to-cluster-00.zip").is_file()
    with open(course / "grades/00/grades.csv", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    first, *_ = exercises = lab.exercises()
    assert {student: float(row["total"]) for student, row in rows.items()} == {
        "ada": sum(one.points for one in exercises),
        "bob": first.points,
        "cy": 0,
    }
    assert (course / "grades/00/index.html").is_file()
