"""Test `make sync`: what it writes, what it leaves unchanged, and its message if a cell is missing."""

import dataclasses
import re
import shutil
from copy import deepcopy

import pytest

from labs_helpers import labs
from labs_helpers.authoring import readme
from labs_helpers.authoring import sync as command
from labs_helpers.authoring.exports import export_files
from labs_helpers.authoring.sync import sync
from labs_helpers.course import own_copies
from labs_helpers.gemm.lab02 import exercises
from tests.notebooks.labs import by_grade_id

LAB = labs.lab("02")


@pytest.fixture
def notebook():
    """Lab 02's, in line with its references."""
    found = own_copies.read(LAB.path)
    sync(LAB, found)
    return found


def with_title(id: str, title: str, **changes) -> labs.Lab:
    """Lab 02 with another title and points of one of its exercises."""

    class Changed(labs.Lab):
        def exercises(self):
            return [dataclasses.replace(e, title=title, **changes) if e.id == id else e for e in super().exercises()]

    return Changed(**dataclasses.asdict(LAB))


def cell_with(text, notebook):
    return next(cell for cell in notebook.cells if text in cell.source)


def test_what_is_generated_is_put_back(notebook):
    before, cells = deepcopy(notebook), by_grade_id(notebook)
    cells["02-3"].source += "\nprint(1)"
    cells["02-3"].metadata["tags"] = ["nbval-ignore-output"]
    cells["02-3-check"].source = "pass"
    cells["02-3-check"].metadata = {"nbgrader": {"grade_id": "02-3-check", "points": 99}}
    heading = cell_with("### Exercise 3 ·", notebook)
    heading.source = heading.source.replace("*20 minutes · 15 points*", "*1 minutes · 1 points*")
    top, set_up = notebook.cells[0], notebook.cells[1]
    top.source = top.source.replace("02 · One kernel instead of three", "2 · A title").replace("/main/", "/other/")
    set_up.source = "from labs_helpers.course import setup\nsetup('2')"
    assert sync(LAB, notebook) == [
        "heading, badge and minutes",
        "set-up cell",
        "02/3: heading, minutes and points",
        "02/3: stub",
        "02/3: check cell",
    ]
    assert notebook == before and sync(LAB, notebook) == []


def test_the_rest_is_left_alone(notebook):
    for cell in notebook.cells:
        cell.id = f"own-{cell.id}"
        if cell.cell_type == "code":
            cell.execution_count, cell.metadata["own"] = 7, {"kept": True}
    cell_with("### Exercise 3 ·", notebook).source += "\n\nOne more sentence."
    before = deepcopy(notebook)
    assert sync(LAB, notebook) == [] and notebook == before


def test_a_heading_without_minutes_gets_them(notebook):
    heading = cell_with("### Exercise 3 ·", notebook)
    whole = heading.source
    heading.source = whole.replace("*20 minutes · 15 points*\n\n", "")
    assert heading.source != whole and sync(LAB, notebook) and heading.source == whole


def test_a_heading_follows_a_title_that_it_does_not_begin(notebook):
    assert sync(with_title("02/7", "transfer: another", points=40), notebook) == [
        "02/7: heading, minutes and points",
        "02/7: check cell",
    ]
    assert "### Exercise 7 · Transfer\n\n*25 minutes · 40 points*" in cell_with("### Exercise 7", notebook).source
    sync(with_title("02/3", "one step"), notebook)
    assert "### Exercise 3 · One step\n" in cell_with("### Exercise 3", notebook).source


def without_cells(id, notebook, heading=False):
    """Takes exercise, check, hints and reveal of `id` out, and with `heading` that too; returns what they were."""
    at = notebook.cells.index(by_grade_id(notebook)[id])
    end = at + (4 if notebook.cells[at + 3].source.startswith("reveal(") else 3)
    taken = notebook.cells[at:end]
    del notebook.cells[at:end]
    if heading:
        above = notebook.cells[at - 1]
        above.source = above.source.split("### Exercise")[0]
    return taken


@pytest.mark.parametrize("heading", [True, False], ids=["its heading too", "its heading stands"])
@pytest.mark.parametrize("number, count", [(3, 4), (1, 4), (7, 3)])
def test_an_exercise_without_cells_gets_them_in_its_place(number, count, heading, notebook):
    id = f"02-{number}"
    taken = without_cells(id, notebook, heading)
    said = f"02/{number}: new cells; write what stands as TODO, then `make refresh LABS=02`"
    assert sync(LAB, notebook) == [said, f"02/{number}: stub", f"02/{number}: check cell"]
    at = notebook.cells.index(by_grade_id(notebook)[id])
    made = notebook.cells[at : at + count]
    assert re.search(rf"^### Exercise {number} · [A-Z]", notebook.cells[at - 1].source, re.MULTILINE)
    assert ("TODO" in notebook.cells[at - 1].source) == heading
    assert [c.source for c in made[:2]] == [c.source for c in taken[:2]]
    assert made[2].source.count("<details>") == 3 and "TODO" in made[2].source
    assert [c.source for c in made[3:]] == [c.source for c in taken[3:]]
    order = [name for name in by_grade_id(notebook) if not name.endswith("-check")]
    assert order == sorted(order) and len(order) == len(LAB.exercises())
    assert sync(LAB, notebook) == []


def test_the_cells_of_a_new_exercise_stand_right_behind_the_one_before_it(notebook):
    without_cells("02-3", notebook, heading=True)
    sync(LAB, notebook)
    at = notebook.cells.index(by_grade_id(notebook)["02-3"])
    assert notebook.cells[at - 2].source == "reveal(exercises.copy_tiles)"


@pytest.mark.parametrize(
    "remove, said",
    [
        ("02-3", "02/3: its exercise cell (grade_id 02-3) is missing; it stands before its check"),
        ("02-3-check", "02/3: its check cell (grade_id 02-3-check) is missing; it stands after 02-3"),
    ],
)
def test_a_missing_cell_is_an_error_that_names_it(remove, said, notebook):
    notebook.cells.remove(by_grade_id(notebook)[remove])
    with pytest.raises(ValueError) as caught:
        sync(LAB, notebook)
    assert str(caught.value) == said


def test_every_fault_is_named_at_once(notebook):
    cells = by_grade_id(notebook)
    notebook.cells[0].source = "One kernel"
    heading = cell_with("### Exercise 1 ·", notebook)
    heading.source = heading.source.replace("### Exercise 1", "### Task 1")
    notebook.cells.append(deepcopy(cells["02-2"]))
    cells["02-6-check"].metadata["nbgrader"]["grade_id"] = "02-9-check"
    with pytest.raises(ValueError) as caught:
        sync(LAB, notebook)
    assert str(caught.value).splitlines() == [
        "no exercise is registered for the cell 02-9-check: remove it, or register its check",
        "the first cell has to begin with `# number · title`, and to have one line with Colab's badge",
        "02/1: no heading `### Exercise 1 · …` in the cell before its exercise cell",
        "2 cells have the grade_id 02-2; there is to be one",
        "02/6: its check cell (grade_id 02-6-check) is missing; it stands after 02-6",
    ]


def test_a_transfer_reference_that_is_not_there_is_named(notebook):
    elsewhere = dataclasses.replace(LAB, transfer="tests.gemm.lab02.exercises.ex8")
    with pytest.raises(ValueError, match=r"02/7: its reference `silu_matmul` has to be in tests\.gemm\.\S+ex8"):
        sync(elsewhere, notebook)


def test_a_check_and_a_reference_of_two_names_are_an_error(notebook):
    another = with_title("02/3", "the K loop", reference=exercises.copy_tiles)
    with pytest.raises(ValueError, match="02/3: its check is called `tile_matmul` and its reference `copy_tiles`"):
        sync(another, notebook)


def test_checks_that_cannot_be_imported_are_named(notebook):
    elsewhere = dataclasses.replace(LAB, package="labs_helpers.gemm.lab99")
    with pytest.raises(ValueError, match=r"labs_helpers\.gemm\.lab99\.checks is not to be imported: ModuleNotFound"):
        sync(elsewhere, notebook)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A README.md and lab 02's notebook, in line, as the command sees them."""
    monkeypatch.setattr(labs, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    shutil.copy(labs.ROOT / "notebooks" / LAB.notebook, tmp_path)
    (tmp_path / "README.md").write_text(f"# Course\n\n{readme.BEGIN}\n{readme.END}\n\nMore.\n")
    command.main(["02"])
    return tmp_path


def test_the_command_changes_nothing_when_nothing_has_changed(tree, capsys):
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tree.iterdir()}
    capsys.readouterr()
    assert command.main(["02"]) == 0 == command.main(["02", "--check"])
    assert capsys.readouterr().out == "Nothing to change.\n" * 2
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tree.iterdir()} == before


def test_check_says_and_fails_but_changes_nothing(tree, capsys):
    in_line = (tree / LAB.notebook).read_bytes()
    other = in_line.replace(b"15 points", b"14 points")
    (tree / LAB.notebook).write_bytes(other)
    capsys.readouterr()
    assert command.main(["02", "--check"]) == 1 and (tree / LAB.notebook).read_bytes() == other
    line = f"notebooks/{LAB.notebook}: 02/3: heading, minutes and points\n"
    assert line in capsys.readouterr().out
    assert command.main(["02"]) == 0 and (tree / LAB.notebook).read_bytes() == in_line
    assert line in capsys.readouterr().out


def test_a_fault_fails_and_leaves_the_notebook_as_it_is(tree, capsys):
    damaged = (tree / LAB.notebook).read_bytes().replace(b'"02-3"', b'"02-33"').replace(b"15 points", b"14 points")
    (tree / LAB.notebook).write_bytes(damaged)
    assert command.main(["02"]) == 1 and (tree / LAB.notebook).read_bytes() == damaged
    assert f"✗ notebooks/{LAB.notebook}: 02/3: its exercise cell (grade_id 02-3) is missing" in capsys.readouterr().err


def test_a_notebook_that_is_not_there_and_a_lab_that_is_none(tree, capsys):
    (tree / LAB.notebook).unlink()
    assert command.main(["02"]) == 1 and f"✗ notebooks/{LAB.notebook}: " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["77"])
    assert "there is no lab '77'. The labs are: 00, 01" in capsys.readouterr().err


def test_exercises_that_were_renumbered_without_their_cells_are_an_error(notebook):
    cells = by_grade_id(notebook)
    cells["02-3-check"].source, cells["02-4-check"].source = cells["02-4-check"].source, cells["02-3-check"].source
    before = deepcopy(notebook)
    with pytest.raises(ValueError, match="02-3-check holds the check of what is exercise 02/4 now"):
        sync(LAB, notebook)
    assert notebook == before


def test_minutes_follow_the_table(notebook):
    known = f"About {LAB.minutes} minutes"
    notebook.cells[0].source = notebook.cells[0].source.replace(known, "About 5 minutes")
    assert sync(LAB, notebook) == ["heading, badge and minutes"] and known in notebook.cells[0].source


@pytest.mark.parametrize("lab", labs.LABS, ids=lambda lab: lab.number)
def test_what_a_lab_exports_is_what_its_files_are_called(lab):
    for path, text in export_files(lab).items():
        assert path.read_text() == text
