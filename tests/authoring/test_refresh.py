"""Test that stored outputs belong to the present code (by its hash), and that `make refresh` renews them."""

import os
from copy import deepcopy
from dataclasses import replace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from labs_helpers import labs
from labs_helpers.authoring import refresh as command
from labs_helpers.authoring.executed import KEY, digest, is_current, keep_outputs
from labs_helpers.authoring.new_lab import METADATA
from labs_helpers.authoring.refresh import main, refresh
from labs_helpers.measure.records import yours


def a_notebook(*sources):
    cells = [new_code_cell(source, metadata={"tags": ["kept"]}) for source in sources]
    return new_notebook(cells=[new_markdown_cell("# A"), *cells], metadata=METADATA)


def test_code_and_its_order_count_and_nothing_else():
    ran = a_notebook("x = 1", "print(x)")
    keep_outputs(ran, ran)
    assert is_current(ran)
    for change, still in [
        (lambda cells: cells[0].update(source="# B"), True),
        (lambda cells: cells[2].update(outputs=[], execution_count=9, metadata={"tags": []}), True),
        (lambda cells: cells.insert(1, new_markdown_cell("More")), True),
        (lambda cells: cells[1].update(source="x = 2"), False),
        (lambda cells: cells.reverse(), False),
        (lambda cells: cells.pop(), False),
        (lambda cells: cells.append(new_code_cell("")), False),
    ]:
        other = deepcopy(ran)
        change(other.cells)
        assert is_current(other) == still


def test_a_notebook_that_was_never_executed_is_not_current():
    assert not is_current(a_notebook("x = 1"))


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """(a lab, a function that writes its notebook)."""
    monkeypatch.setattr(labs, "NOTEBOOKS", tmp_path)
    one = replace(labs.LABS[0], notebook="00_one.ipynb")
    return one, lambda notebook: nbformat.write(notebook, one.path)


def test_refresh_stores_outputs_counts_and_the_hash_and_nothing_else(shelf):
    lab, write = shelf
    before = a_notebook("import os; x = 6", "print(7 * x)", "x")
    before.cells[2].outputs = [new_output("stream", name="stdout", text="stale")]
    write(before)
    assert refresh(lab, cell_timeout=100) == ""
    after = nbformat.read(lab.path, as_version=4)
    nbformat.validate(after)
    assert [cell.execution_count for cell in after.cells[1:]] == [1, 2, 3]
    assert after.cells[2].outputs == [{"output_type": "stream", "name": "stdout", "text": "42\n"}]
    assert after.metadata == {**METADATA, KEY: digest(before)}
    for cell, old in zip(after.cells, before.cells, strict=True):
        assert (cell.id, cell.source, cell.metadata) == (old.id, old.source, old.metadata)


def test_a_cell_that_fails_leaves_the_file_as_it_is(shelf):
    lab, write = shelf
    write(a_notebook("x = 1", "1 / 0"))
    before = lab.path.read_bytes()
    error = refresh(lab, cell_timeout=100)
    assert error.startswith("lab 00 · cell 3/3 · A\n") and error.endswith("ZeroDivisionError: division by zero")
    assert lab.path.read_bytes() == before


def test_a_lab_that_is_none_is_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["77"])
    assert "there is no lab '77'" in capsys.readouterr().err


def test_outputs_that_lack_what_this_machine_cannot_make_are_not_stored(shelf):
    lab, write = shelf
    write(a_notebook("from labs_helpers.compile.report import WITHOUT_TRITON_3_2\nprint(WITHOUT_TRITON_3_2)"))
    before = lab.path.read_text()
    assert "3.2.0 is not installed" in refresh(lab, cell_timeout=100)
    assert lab.path.read_text() == before


def test_what_is_stored_shows_no_records_of_the_maintainer_s_machine(monkeypatch, tmp_path):
    for name in ("JUPYTER_PREFER_ENV_PATH", "PYTHONPATH", "LABS_RECORDS"):  # `main` sets them for its own process
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / "gemm.some-gpu.jsonl").write_text('{"n": 1}\n')
    seen = []
    monkeypatch.setattr(
        command, "refresh", lambda *_, **__: seen.append((os.environ["LABS_RECORDS"], yours("gemm"))) or ""
    )
    assert main(["02"]) == 0 and seen == [(os.devnull, {})]
