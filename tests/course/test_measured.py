"""A machine that is too busy for a measurement: one sentence, and the lab goes on with recorded figures."""

import ast
import sys

import nbformat
import pytest

from labs_helpers.course import measured, measured_here
from labs_helpers.labs import LABS
from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.launch.process import ProcessFailed, run

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]
MEASURES = [
    pytest.param(lambda seconds: run(SLEEPS, timeout=seconds), id="a command"),
    pytest.param(
        lambda seconds: run_on_ranks(lambda comm: comm.recv(source=comm.rank), 2, timeout=seconds), id="ranks"
    ),
]


@pytest.mark.parametrize("measure", MEASURES)
def test_out_of_time_there_is_a_sentence_and_what_was_recorded(measure, monkeypatch, capsys):
    monkeypatch.setattr(measured, "WITHIN_S", 0.1)
    assert measured_here(measure, lambda: 7, "a 4-core CPU") == 7
    assert capsys.readouterr().out == (
        "○ This machine was too slow or too busy to measure that within 0.1 s. "
        "The lab continues with the measurement recorded on a 4-core CPU.\n"
    )


def test_in_time_it_is_measured_here_and_another_failure_is_not_hidden(capsys):
    assert measured_here(lambda seconds: seconds, lambda: 7, "an H200") == 50
    with pytest.raises(ProcessFailed, match="status 3"):
        measured_here(lambda seconds: run([sys.executable, "-c", "exit(3)"], timeout=60), lambda: 7, "an H200")
    assert capsys.readouterr().out == ""


def calls():
    """(notebook's first cell with imports, what is recorded for a call of measured_here) of all notebooks."""
    for lab in LABS:
        cells = [cell.source for cell in nbformat.read(lab.path, 4).cells if cell.cell_type == "code"]
        for source in (cell for cell in cells if "measured_here(" in cell):
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "measured_here":
                    if not isinstance(node.args[1], ast.Lambda):
                        continue  # a function of the cell's own, which runs something else in place of records
                    yield pytest.param(cells[1], ast.unparse(node.args[1]), id=f"{lab.number} {ast.unparse(node)[:50]}")


@pytest.mark.parametrize("imports, instead", [*calls()])
def test_every_notebooks_recorded_figures_are_there(imports, instead):
    names = {}
    exec(imports, names)
    assert len(eval(instead, names)())
