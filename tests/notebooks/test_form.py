"""Each lab is shipped as a student should get it: stubs of the tested references, sound metadata, one address."""

import re
import tomllib

import nbformat
import pytest

from labs_helpers.compile.source import plain
from labs_helpers.course.stub import stub_of
from labs_helpers.labs import ROOT
from tests.notebooks.labs import NOTEBOOKS, exercise, exercises, grade_id, read, solved_cell

pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_each_exercise_cell_is_the_stub_of_its_reference(path):
    cells = exercises(read(path))
    assert cells
    for identifier, cell in cells.items():
        assert cell.source == stub_of(solved_cell(identifier)), identifier


def test_each_exercise_has_its_check_with_its_points_and_is_followed_by_hints(path):
    notebook = read(path)
    cells = {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}
    for identifier in exercises(notebook):
        check, registered = cells[f"{identifier}-check"], exercise(identifier)
        name = plain(registered.reference).__name__ if registered.reference else registered.trial.__name__
        assert check.source.strip() == f"{name} = check.{name}({name})"
        assert check.metadata["nbgrader"]["points"] == registered.points
        assert check.metadata["nbgrader"]["locked"] and "nbval-ignore-output" in check.metadata["tags"]
        after = notebook.cells[notebook.cells.index(check) + 1]
        assert after.source.count("<details>") >= 3, f"{identifier}: three hints follow the check"
        heading = notebook.cells[notebook.cells.index(cells[identifier]) - 1].source
        assert f"*{registered.minutes} minutes · {registered.points} points*" in heading, identifier
        title = re.search(rf"^### Exercise {identifier[3:]} · (.+)$", heading, re.MULTILINE)
        assert title and registered.title.lower().startswith(title[1].lower()), f"{identifier}: {registered.title}"


def test_a_prediction_is_asked_for(path):
    assert any("predict(" in cell.source for cell in read(path).cells if cell.cell_type == "code")


def test_the_notebook_is_valid_and_its_cells_are_short(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    for cell in notebook.cells:
        assert len(cell.source.splitlines()) <= 45, cell.source.splitlines()[0]
        if cell.cell_type == "code":
            assert max(map(len, cell.source.splitlines())) <= 100, cell.source.splitlines()[0]


def test_the_course_s_address_is_that_of_pyproject(path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    address = project["urls"]["Repository"]
    notebook = read(path)
    badge = address.replace("https://github.com", "https://colab.research.google.com/github")
    assert f"{badge}/blob/main/notebooks/{path.name}" in notebook.cells[0].source
    set_up = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert f"git+{address}\n" in set_up.source and set_up.source.endswith(f'setup("{path.stem[:2]}")')


def test_it_ends_with_the_summary_what_to_take_away_questions_and_reading(path):
    text = [cell.source for cell in read(path).cells]
    assert "check.summary()" in text[-2]
    assert all(part in text[-1] for part in ("To take away", "Questions", "Further reading", "<details>"))


def test_hints_and_questions_are_folded_html_that_closes(path):
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            assert cell.source.count("<details>") == cell.source.count("</details>")
            assert cell.source.count("<summary>") == cell.source.count("</summary>")
