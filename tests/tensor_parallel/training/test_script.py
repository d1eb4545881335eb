"""mpi_scripts/train_2d.py itself: what it prints and writes, what it refuses, and how it ends when a rank fails."""

import json
import os
import sys
from pathlib import Path

import pytest

from labs_helpers.launch.flavour import find_flavour
from labs_helpers.launch.mpirun import RanksFailed, mpirun
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.measure import results

SCRIPT = Path(__file__).parents[3] / "mpi_scripts/train_2d.py"
SMALL = "--data text --length 16 --width 32 --heads 4 --batch 8 --steps 6 --report 2".split()


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


@pytest.mark.soak  # launch/test_mpirun.py has the same of any program
def test_a_rank_that_raises_ends_the_run_with_its_traceback(tmp_path):
    (tmp_path / "step-00000002.checkpoint.part").mkdir()  # where rank 0 wants to write
    with pytest.raises(RanksFailed, match="rank 0 printed:\nstep 1 of 6: loss .* left$") as caught:
        mpirun(SCRIPT, 2, "--dp", 2, *SMALL, "--checkpoint", tmp_path, "--every", 2, "--report", 1, timeout=100)
    assert "IsADirectoryError" in caught.value.errors[0] and "folder.save" in caught.value.errors[0]
    assert caught.value.outputs[1] == ""  # rank 0 alone speaks
