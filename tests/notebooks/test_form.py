"""Test that each shipped lab agrees with its references and the README's table, is executed, and has the common
form."""

import re

import nbformat
import pytest

from labs_helpers.authoring.executed import is_current
from labs_helpers.authoring.sync import sync
from labs_helpers.labs import LABS, NOTEBOOKS, ROOT
from tests.notebooks.labs import shipped

pytestmark = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.path.stem)


def test_make_sync_has_nothing_to_change(lab):
    """Title, badge, set-up cell; stubs and checks with their metadata, minutes and points."""
    assert sync(lab, shipped(lab)) == []


def test_its_outputs_are_those_of_its_code(lab):
    if not is_current(shipped(lab)):
        stale = f"{lab.path.name} was changed after it was executed: make refresh LABS={lab.number}"
        pytest.fail(stale, pytrace=False)


def test_nothing_is_left_to_be_written(lab):
    assert not [cell.source for cell in shipped(lab).cells if "TODO" in cell.source]


def test_a_prediction_is_asked_for(lab):
    assert any("predict(" in cell.source for cell in shipped(lab).cells if cell.cell_type == "code")


def test_the_notebook_is_valid_and_its_cells_are_short(lab):
    notebook = shipped(lab)
    nbformat.validate(notebook)
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    for cell in notebook.cells:
        assert len(cell.source.splitlines()) <= 45, cell.source.splitlines()[0]
        if cell.cell_type == "code":
            assert max(map(len, cell.source.splitlines())) <= 100, cell.source.splitlines()[0]


def test_it_ends_with_the_summary_what_to_take_away_questions_and_reading(lab):
    text = [cell.source for cell in shipped(lab).cells]
    assert "check.summary()" in text[-2]
    assert all(part in text[-1] for part in ("To take away", "Questions", "Further reading", "<details>"))


def test_hints_and_questions_are_folded_html_that_closes(lab):
    for cell in shipped(lab).cells:
        if cell.cell_type == "markdown":
            assert cell.source.count("<details>") == cell.source.count("</details>")
            assert cell.source.count("<summary>") == cell.source.count("</summary>")


# Markdown's, and HTML's in <details>.
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|<a href=\"([^\"]+)\".*?</a>", re.DOTALL)
SOURCES = {path.name for folder in ("labs_helpers", "mpi_scripts") for path in (ROOT / folder).rglob("*.py")}


def texts(lab):
    """The lab's Markdown without the blocks of code."""
    cells = [cell for cell in shipped(lab).cells if cell.cell_type == "markdown"]
    return [re.sub(r"^```.*?^```", "", cell.source, flags=re.MULTILINE | re.DOTALL) for cell in cells]


def test_a_link_to_a_file_of_the_course_has_a_target_that_exists(lab):
    """It has to work from notebooks/ and my_labs/ alike, and JupyterLab shows nothing of tests/."""
    targets = [a or b for text in texts(lab) for a, b in LINK.findall(text)]
    for target in targets:
        if "://" not in target and not target.startswith(("#", "attachment:")):
            file = (NOTEBOOKS / target.partition("#")[0]).resolve()
            assert file.is_file() and file.is_relative_to(ROOT), target
            assert file.parent == NOTEBOOKS or target.startswith(("../labs_helpers/", "../mpi_scripts/", "../results/"))


def test_a_file_of_the_course_is_named_in_a_link(lab):
    unlinked = [
        re.sub(r"python [^`]*", "", LINK.sub("", text)) for text in texts(lab)
    ]  # but for a reader's own command
    named = [name for text in unlinked for name in re.findall(r"[\w./]*\b\w+\.py\b", text)]
    assert not [name for name in named if name.rpartition("/")[2] in SOURCES]
