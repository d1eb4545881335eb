"""Run the cells of a notebook that uses a cluster in a separate kernel."""

import re
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from labs_helpers.launch.cluster import start_cluster, stop_cluster
from labs_helpers.launch.patience import limit_text
from tests.launch.deadlocks import left
from tests.processes import eventually

ROOT = Path(__file__).parents[2]
DEADLOCK = """%%px
def shift():
    MPI.COMM_WORLD.recv(source=0)

if MPI.COMM_WORLD.rank:
    shift()
"""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Notebook:
    """A kernel; a call runs a cell and returns its text: output, and the traceback if it failed."""

    def __init__(self):
        self.manager, self.client = start_new_kernel(kernel_name="python3", startup_timeout=60, cwd=ROOT)

    def __call__(self, cell):
        texts = []

        def hear(message):
            content = message["content"]
            texts.append(content.get("text") or content.get("data", {}).get("text/plain", ""))
            texts.extend(content.get("traceback", []))

        self.client.execute_interactive(cell, timeout=100, output_hook=hear)
        return COLOURS.sub("", "".join(texts)).strip()

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)  # SIGKILL


@pytest.fixture(scope="module")
def token(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def notebook():
    notebook = Notebook()
    notebook("from labs_helpers.launch.cluster import start_cluster, stop_cluster")
    yield notebook
    notebook.end()


@pytest.fixture(scope="module")
def cluster(notebook, token):
    """A cluster of 3 ranks in the notebook, `c` there."""
    assert notebook(f"c = start_cluster(3, env={{'TOKEN': {token!r}}})\nc") == "3 ranks, ready for %%px"


def test_output_in_rank_order(notebook, cluster):
    told = notebook("%%px\nimport labs_helpers\nprint(MPI.COMM_WORLD.rank, MPI.COMM_WORLD.allreduce(1))")
    assert re.sub(r"\s+", " ", told) == "[stdout:0] 0 3 [stdout:1] 1 3 [stdout:2] 2 3"


ODD_ONE = """%%px
print("before", MPI.COMM_WORLD.rank)
if MPI.COMM_WORLD.rank == 1:
    raise ValueError("odd one")
"""
RAISED = "rank 1 raised:\nTraceback (most recent call last):\n  a cell, line 3, in <module>\n"


def test_an_error_on_one_rank_is_shown_and_the_cluster_goes_on(notebook, cluster):
    told = notebook(ODD_ONE)
    assert (
        all(f"before {rank}" in told for rank in range(3))
        and "RanksFailed: The cell failed on 3 ranks.\n" + RAISED in told
    )
    assert "ValueError: odd one\nranks 0, 2 had ended before." in told
    assert notebook("%px print('on')").endswith("on")


def test_context_manager(notebook, cluster, token):
    told = notebook("with c:\n    print(c.view.apply_sync(lambda: __import__('mpi4py.MPI').MPI.COMM_WORLD.size))\nc")
    assert told == "[3, 3, 3]\n3 ranks, stopped"
    assert left(token) == []
    assert "the cluster is stopped" in notebook("%px 1")


def test_a_deadlock_is_told_and_ends_the_cluster(notebook, cluster, token):
    notebook(f"c = start_cluster(3, env={{'TOKEN': {token!r}}}, cell_timeout=2)")
    told = notebook(DEADLOCK)
    assert f"RanksTimeout: The cell did not end within {limit_text(2)}." in told and "start it again" in told
    assert "rank 0 had ended before." in told
    assert "ranks 1, 2: in shift, line 2 of a cell\n    called from <module>, line 5 of a cell" in told
    assert left(token) == []
    assert notebook("stop_cluster()\nstop_cluster()\nc") == "3 ranks, stopped"


def start(notebook, token):
    assert notebook(f"c = start_cluster(2, env={{'TOKEN': {token!r}}})\nc") == "2 ranks, ready for %%px"


@pytest.mark.soak  # of the parts in test_px.py the others have shorter tests
def test_what_keeps_a_cell_from_ending_is_told_and_ends_the_cluster(notebook, token):
    """A rank that raises while another waits for it, a rank that dies, and the controller."""
    start(notebook, token)
    told = notebook(ODD_ONE + "MPI.COMM_WORLD.recv(source=1)")
    assert "The cell failed, and other ranks did not end. The cluster is ended" in told and RAISED in told
    assert "rank 0: in <module>, line 4 of a cell" in told and "rank 1 printed:\nbefore 1" in told
    assert left(token) == []
    start(notebook, token)
    told = notebook("%%px\nimport os\nif MPI.COMM_WORLD.rank == 1:\n    os._exit(0)\nMPI.COMM_WORLD.recv(source=1)")
    assert "rank 1 ended without a word: killed, or by os._exit." in told
    assert "rank 0: in <module>, line 4 of a cell" in told and left(token) == []
    start(notebook, token)
    told = notebook("import os\nos.kill(c._launcher.controller.process.pid, 9)\n%px MPI.COMM_WORLD.recv(source=0)")
    assert "The cluster's controller has died" in told and "ranks 0, 1: in <module>, line 1 of a cell" in told
    assert left(token) == []


@pytest.mark.soak
def test_a_cluster_ends_with_its_killed_kernel(tmp_path):
    notebook = Notebook()
    notebook("from labs_helpers.launch.cluster import start_cluster")
    notebook(f"c = start_cluster(2, env={{'TOKEN': {str(tmp_path)!r}}})")
    started = left(str(tmp_path))
    notebook.end()
    assert started and eventually(lambda: not left(str(tmp_path)))


@pytest.mark.parametrize("ranks", [0, -2, "2"])
def test_the_number_of_ranks_is_checked(ranks):
    with pytest.raises(ValueError, match="ranks must be a positive whole number"):
        start_cluster(ranks)


def test_stop_without_a_cluster():
    stop_cluster()
