"""Test that each shipped lab agrees with its references and the README's table, is executed, and has the common
form."""

import nbformat
import pytest

from labs_helpers.authoring.executed import is_current
from labs_helpers.authoring.sync import sync
from labs_helpers.labs import LABS
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
