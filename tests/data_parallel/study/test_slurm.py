"""Test the study under a one-machine Slurm: its own ranks, torchrun's in a batch job, and a rank that dies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labs_helpers.data_parallel.study import records
from labs_helpers.measure import results
from tests.data_parallel.study.slurm import missing, one_machine_slurm

ROOT = Path(__file__).parents[3]
STUDY = [sys.executable, "-m", "labs_helpers.data_parallel.study"]
SMALL = ["--size", "tiny", "--length", "32", "--rounds", "2", "--batches", "1", "--steps", "3"]
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="its daemons are started by root"),
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]


@pytest.fixture(scope="module")
def environ(tmp_path_factory):
    with one_machine_slurm(tmp_path_factory.mktemp("slurm")) as environ:
        yield environ | {"PYTHONPATH": str(ROOT), "LABS_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}


def told(command, environ, timeout=900):
    run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=timeout)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_of_srun(environ, tmp_path, ranks):
    kinds = ["all_reduce", "wrappers", "buckets", "timeline", "scaling", "accumulate", "compression", "memory", "zero"]
    command = ["srun", f"--ntasks={ranks}", "--overcommit", "--kill-on-bad-exit=1", *STUDY, *SMALL]
    status, said = told([*command, "--out", str(tmp_path / "out.jsonl"), *kinds], environ)
    assert status == 0, said
    rows = results.load(tmp_path / "out.jsonl")
    assert rows["ranks"].max() == ranks and rows["kind"].nunique() == len(kinds)
    # Rank 0 alone records: two writers would record every case twice.
    assert sum(len(records.select(rows, kind)) for kind in rows["kind"].unique()) == len(rows)


def test_torchrun_in_a_batch_job(environ, tmp_path):
    torchrun = f"{Path(sys.executable).parent / 'torchrun'} --nproc-per-node 2 -m labs_helpers.data_parallel.study"
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\nexec {torchrun} {' '.join(SMALL)} --out {tmp_path / 'out.jsonl'} wrappers losses\n")
    command = ["sbatch", "--wait", "--ntasks=1", f"--output={tmp_path / 'said'}", str(script)]
    status, said = told(command, environ)
    assert status == 0, said + (tmp_path / "said").read_text()
    assert set(results.load(tmp_path / "out.jsonl")["kind"]) == {"wrapper", "loss_curve"}


def test_a_rank_that_is_killed_ends_the_job_and_is_named(environ, tmp_path):
    """Rank 1 kills itself when the second kind begins."""
    program = tmp_path / "dies.py"
    program.write_text(
        "import os, signal\n"
        "from labs_helpers.data_parallel.study import measure, __main__ as command\n"
        "def dies(task):\n"
        "    if os.environ['RANK'] == '1':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return measure.KINDS['wrappers'](task)\n"
        "measure.KINDS['buckets'] = dies\n"
        "command.main()\n"
    )
    # Without --kill-on-bad-exit, so that the others have the time to say so themselves.
    command = ["srun", "--ntasks=3", "--overcommit", sys.executable, str(program), *SMALL]
    options = ["--timeout", "20", "--out", str(tmp_path / "out.jsonl")]
    status, said = told([*command, *options, "wrappers", "buckets"], environ, timeout=120)
    assert status != 0 and "rank 1 does not answer (killed, or stopped) since buckets" in said, said
    left = subprocess.run(["pgrep", "-f", str(program)], capture_output=True, text=True)
    assert left.stdout == ""
