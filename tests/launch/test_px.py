"""Test waiting for a %%px cell without a cluster: the tests write its folder as engines do (see test_cluster.py)."""

import os
import subprocess
import time

import pytest

from labs_helpers.launch.failure import RanksTimeout
from labs_helpers.launch.patience import limit_text
from labs_helpers.launch.px import OTHERS_MAY_END_S, Cell
from labs_helpers.launch.worker import where_pids_mean_the_same


class Running:
    """ipyparallel's AsyncResult of a cell that ends on no rank."""

    stdout, stderr = ["", "so far\n"], ["", ""]

    def done(self):
        return False

    def wait(self, seconds):
        time.sleep(seconds / 50)

    wait_for_output = wait


@pytest.fixture
def cell(tmp_path):
    return Cell(tmp_path, 2, Running(), lambda: True)


def test_a_cell_that_has_ended(cell, monkeypatch):
    monkeypatch.setattr(Running, "done", lambda self: True)
    assert cell.wait(1) is None and cell.error() is None
    (cell.folder / "1.error").write_text("ValueError: odd one")
    assert cell.wait(1) is None
    assert str(cell.error()) == "The cell failed on 2 ranks.\nrank 1 raised:\nValueError: odd one"


def test_a_rank_that_raised_while_another_waits(cell):
    error = cell.folder / "1.error"
    error.write_text("ValueError: odd one")
    os.utime(error, (0, time.time() - OTHERS_MAY_END_S))
    told = str(cell.wait(60))
    assert told.startswith(
        "The cell failed, and other ranks did not end. The cluster is ended: start it again.\nrank 1"
    )
    assert told.endswith("raised:\nValueError: odd one\nrank 1 printed:\nso far")


def test_a_rank_that_died(cell):
    process = subprocess.Popen(["true"])
    process.wait()
    for rank, pid in enumerate((os.getpid(), process.pid)):
        (cell.folder / f"{rank}.pid").write_text(f"{pid} {where_pids_mean_the_same()}")
    (cell.folder / "0.done").touch()
    (cell.folder / "1.where").touch()
    told = str(cell.wait(60))
    assert told.startswith("The cell failed. The cluster") and "rank 1 ended without a word: killed, or by os" in told
    assert "rank 0 had ended before." in told


def test_the_controller_that_died(cell):
    cell.controller_lives = lambda: False
    assert str(cell.wait(60)).startswith("The cluster's controller has died: that is ipyparallel's, not the cell's.")


def test_the_time_limit(cell):
    told = cell.wait(0.01)
    assert isinstance(told, RanksTimeout) and str(told).startswith(
        f"The cell did not end within {limit_text(0.01)}. The cluster is"
    )
