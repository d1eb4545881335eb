"""Test the study under torchrun: on two nodes with rendezvous, and with a rank that dies or stalls (make soak)."""

import os
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labs_helpers.data_parallel.study import records
from labs_helpers.launch.patience import patience
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.measure import results

ROOT = Path(__file__).parents[3]
SMALL = ["--size", "tiny", "--length", "32", "--rounds", "2", "--batches", "1"]
ENVIRON = {"PYTHONPATH": str(ROOT), "LABS_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
FAILS = """
import os, signal
from labs_helpers.data_parallel.study import measure, __main__ as command
def fails(task):
    if os.environ["RANK"] == "1":
        open(__file__ + ".now", "w").close()
        {how}
    return measure.KINDS["wrappers"](task)
measure.KINDS["buckets"] = fails
command.main()
"""
pytestmark = [pytest.mark.soak, pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is left")]


def test_two_nodes_by_rendezvous(tmp_path):
    """Start two agents with two ranks each, as on two machines."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
    command = ["torchrun", "--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}",
               "-m", "labs_helpers.data_parallel.study", *SMALL, "--out", str(tmp_path / "out.jsonl")]  # fmt: skip
    with ThreadPoolExecutor() as pool:
        agents = [
            pool.submit(run, [*command, "scaling", "zero"], timeout=900, env={**os.environ, **ENVIRON}) for _ in "ab"
        ]
        for agent in agents:
            agent.result()
    rows = results.load(tmp_path / "out.jsonl")
    assert set(rows["kind"]) == {"scaling", "stage_step"} and rows["ranks"].max() == 4
    # Rank 0 alone records: two writers would record every case twice.
    assert sum(len(records.select(rows, kind)) for kind in rows["kind"].unique()) == len(rows)


@pytest.mark.parametrize("how, within_s, named", [
    ("os.kill(os.getpid(), signal.SIGKILL)", 10, r"rank +: 1 \(local_rank: 1\)\s+exitcode +: -9"),
    ("os.kill(os.getpid(), signal.SIGSTOP)", 10, r"traceback : rank 1 does not answer \(.* stopped\) since buckets"),
    ("signal.pause()", 20, r"traceback : no rank has gone on for 10 s: rank 1 is stuck since buckets.*, in fails, "),
    ("raise ValueError('planted')", 10, r"traceback : rank 1 failed: ValueError: planted"),
])  # fmt: skip
def test_a_rank_that_fails_ends_the_others_and_is_named(how, within_s, named, tmp_path):
    program = tmp_path / "fails.py"
    program.write_text(FAILS.format(how=how))
    out = ["--out", str(tmp_path / "out.jsonl")]
    command = ["torchrun", "--nproc-per-node=3", str(program), *SMALL, "--timeout", "10", *out, "wrappers", "buckets"]
    with pytest.raises(ProcessFailed) as caught:
        run(command, timeout=120, env={**os.environ, **ENVIRON})
    assert time.time() - (tmp_path / "fails.py.now").stat().st_mtime < within_s * patience()
    assert "did not end within" not in str(caught.value) and re.search(named, caught.value.output), caught.value.output
    assert subprocess.run(["pgrep", "-f", str(program)], capture_output=True, text=True).stdout == ""
