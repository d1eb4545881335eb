"""Test mpi_scripts/train_2d.py: its output and files, its refusals, and its end if a rank fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labs_helpers.launch.flavour import find_flavour
from labs_helpers.launch.mpirun import RanksFailed, mpirun
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.measure import results
from tests.processes import PATIENCE_S

SCRIPT = Path(__file__).parents[2] / "mpi_scripts/train_2d.py"
SMALL = "--data text --length 16 --width 32 --heads 4 --batch 8 --steps 6 --report 2".split()


def alone(*options):
    """The script's end when it is started without mpirun."""
    command = list(map(str, [sys.executable, SCRIPT, *SMALL, *options]))
    return subprocess.run(command, env=find_flavour().environment() | os.environ, capture_output=True, text=True,
                          timeout=PATIENCE_S)  # fmt: skip


def test_it_trains_prints_and_records(tmp_path):
    out, folder = tmp_path / "records.jsonl", tmp_path / "saved"
    saving = ["--checkpoint", folder, "--every", 4, "--out", out]
    (first,) = mpirun(SCRIPT, 1, *SMALL, *saving, timeout=100)
    lines = first.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["step 2 of 6", "step 4 of 6", "step 6 of 6"]
    assert "validation: loss" in first and "by formula" in first and "2 records appended" in lines[-1]
    assert sorted(file.name for file in folder.iterdir()) == ["step-00000004.checkpoint", "step-00000006.checkpoint"]
    frame = results.load(out)
    assert list(frame["kind"]) == ["group", "curve"] and set(frame["study"]) == {"train_2d"}
    assert frame["on.machine"].str.endswith("-core CPU").all() and frame["on.mpi"].notna().all()
    curve = json.loads(out.read_text().splitlines()[-1])
    assert len(curve["losses"]) == 6 and f"loss {curve['losses'][0]:.4f}" in first


def test_it_refuses_in_one_line_and_before_it_loads_pytorch():
    """Started as from a shell. mpirun adds its own notice that the program ended with a status."""
    flavour = find_flavour()
    environment = flavour.environment() | os.environ | {"PYTHONPROFILEIMPORTTIME": "1"}
    command = [*flavour.command(3), sys.executable, "-m", "mpi4py", SCRIPT, "--dp", "2"]
    with pytest.raises(ProcessFailed) as caught:
        run(command, timeout=60, env=environment)
    said = [line for line in caught.value.output.splitlines() if not line.startswith("import time:")]
    (error,) = [line for line in said if "train_2d.py" in line]
    assert error.startswith("train_2d.py: error: dp × tp is 2 × 1 = 2, but there are 3 ranks. Possible dp × tp on 3")
    assert "Traceback" not in caught.value.output and "MPI_ABORT" not in caught.value.output
    imported = {line.split("|")[-1].strip() for line in caught.value.output.splitlines() if line.startswith("import")}
    assert "mpi4py.MPI" in imported and "torch" not in imported


def test_a_loss_that_is_no_number_is_told_in_one_line():
    done = alone("--lr", "1e30")
    assert (done.returncode, done.stderr) == (1, "train_2d.py: error: the loss of step 4 is nan: try a lower --lr\n")


def test_its_time_is_limited():
    done = alone("--steps", 10**9, "--limit", 3)
    said = "train_2d.py: error: not finished after 3 s, its time limit; --limit S sets the limit to S seconds\n"
    assert (done.returncode, done.stderr) == (124, said)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
@pytest.mark.parametrize("option", ["--out", "--checkpoint"])
def test_what_cannot_be_written_to_is_refused_before_it_trains(option):
    done = alone(option, "/proc/self/there")
    assert (done.returncode, done.stdout) == (2, "") and "Traceback" not in done.stderr
    assert "train_2d.py: error: cannot " in done.stderr and "/proc/self/there" in done.stderr


@pytest.mark.soak
def test_a_disk_that_is_full_ends_all_ranks_with_one_sentence(tmp_path):
    """Started as from a shell, without `-m mpi4py`."""
    flavour = find_flavour()
    (tmp_path / "step-00000002.checkpoint.part").mkdir()  # where rank 0 wants to write
    saving = ["--checkpoint", tmp_path, "--every", 2]
    command = [*flavour.command(2), sys.executable, SCRIPT, "--dp", 2, *SMALL, *saving]
    with pytest.raises(ProcessFailed) as caught:
        run(list(map(str, command)), timeout=100, env=flavour.environment() | os.environ)
    told = "step-00000002.checkpoint: the checkpoint of step 2 could not be written (Is a directory); there is none"
    assert told in caught.value.output and "Traceback" not in caught.value.output


@pytest.mark.soak  # launch/test_mpirun.py has the same of any program
def test_a_rank_that_fails_ends_the_run_with_its_sentence(tmp_path):
    (tmp_path / "step-00000002.checkpoint.part").mkdir()  # where rank 0 wants to write
    said = "rank 0 printed:\nstep 1 of 6: loss .* left\ntrain_2d.py: error: .*step 2 could not be written"
    with pytest.raises(RanksFailed, match=said) as caught:
        mpirun(SCRIPT, 2, "--dp", 2, *SMALL, "--checkpoint", tmp_path, "--every", 2, "--report", 1, timeout=100)
    assert caught.value.errors[0].endswith("SystemExit: 1") and "save" not in caught.value.errors[0]
    assert caught.value.outputs[1] == ""  # rank 0 alone speaks
