"""Test `torchrun -m labs_helpers.training`: its losses, its refusals, and its end if a rank fails."""

import json
import os
import re
import subprocess
import sys

import pytest

from labs_helpers.clinic.failures import failure, reported
from labs_helpers.communication import Mesh
from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.labs import ROOT
from labs_helpers.launch.patience import patience
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.measure import results
from labs_helpers.practice.groups import practice_groups
from labs_helpers.training import __main__ as program
from labs_helpers.training import datasets, options
from labs_helpers.training.checkpoints import Checkpoints
from labs_helpers.training.places import Place
from labs_helpers.training.trainer import Trainer

SMALL = "--data text --length 16 --width 32 --heads 4 --batch 8 --steps 4 --report 1".split()
ENVIRON = {"PYTHONPATH": str(ROOT), "LABS_DEVICE": "cpu", "OMP_NUM_THREADS": "1", "RES_OPTIONS": "timeout:1 attempts:1"}


def torchrun(ranks, *arguments, timeout=100):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", ranks, *arguments]
    return run(list(map(str, command)), timeout=timeout, env={**os.environ, **ENVIRON})


def losses_alone():
    """The losses of one practice rank."""

    def train(comm):
        wanted = options.parse(SMALL, "", 1)
        data = datasets.load(comm, wanted.data, wanted.batch, wanted.length, wanted.seed)
        trainer = Trainer(wanted, Place(Mesh(PracticeCommunication(comm), wanted.axes), "cpu", False), data)
        return trainer.mean_losses([trainer.train_step() for _ in range(wanted.steps)])

    return practice_groups(train, 1, timeout=100).results[0]


def test_it_trains_saves_and_records(tmp_path):
    out, folder = tmp_path / "records.jsonl", tmp_path / "saved"
    saving = ["--checkpoint", folder, "--every", 2, "--out", out]
    said = torchrun(2, "-m", "labs_helpers.training", "--pp", 2, "--schedule", "ZB-H1", *SMALL, *saving)
    assert "step 4 of 4: loss" in said and f"3 records appended to {out}" in said
    assert list(Checkpoints(folder).by_step()) == [2, 4]
    assert results.load(out)["on.machine"].str.endswith("-core CPU").all()
    *_, first, second, curve = map(json.loads, out.read_text().splitlines())
    assert [group["ranks"] for group in (first, second)] == [[0], [1]]
    assert (curve["pp"], curve["schedule"], curve["micro_batches"], curve["way"]) == (2, "ZB-H1", 4, "torch")
    assert curve["losses"] == pytest.approx(losses_alone(), abs=1e-4)


@pytest.mark.parametrize("line, said", {
    "--pp 3": "dp × pp × tp is 1 × 3 × 1 = 3, but there are 2 ranks",
    "--pp 2 --way mpi": "way is mpi, which needs mpirun and mpi_scripts/train_2d.py; here it is torch",
    "--pp 2 --timeout 0": "argument --timeout: 0 is not a positive number of seconds",
}.items())  # fmt: skip
def test_it_refuses_in_one_line_of_one_rank(line, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["-m labs_helpers.training", *line.split()])
    for rank in ("0", "1"):
        monkeypatch.setenv("LABS_DEVICE", "cpu")
        for name, value in {"RANK": rank, "WORLD_SIZE": "2", "LOCAL_RANK": rank}.items():
            monkeypatch.setenv(name, value)
        assert program.main() == 2
        lines = capsys.readouterr().err.splitlines()
        assert [each.partition("error: ")[2] for each in lines] == ([said] if rank == "0" else [])


def test_without_ranks_it_says_how_to_start_it(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["-m labs_helpers.training"])
    for name in ("RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    assert program.main() == 2 and "no ranks: start this with torchrun" in capsys.readouterr().err


@pytest.mark.soak
def test_another_layout_resumes_and_a_loss_that_is_no_number_is_told(tmp_path):
    saving = ["--checkpoint", tmp_path / "saved", "--every", 2]
    torchrun(2, "-m", "labs_helpers.training", "--dp", 2, "--zero", 1, *SMALL, *saving)
    Checkpoints(tmp_path / "saved").by_step()[4].unlink()
    layout = ["--dp", 2, "--pp", 2, "--tp", 2, "--out", tmp_path / "out.jsonl"]
    said = torchrun(8, "-m", "labs_helpers.training", *layout, *SMALL, *saving, "--resume")
    assert "resuming after step 2" in said
    curve = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[-1])
    assert curve["losses"] == pytest.approx(losses_alone(), abs=1e-4)
    with pytest.raises(ProcessFailed) as caught:
        torchrun(2, "-m", "labs_helpers.training", "--pp", 2, *SMALL, "--lr", "1e30")
    assert len(re.findall(r"error: the loss of step \d is nan: try a lower --lr", caught.value.output)) == 1


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is left")
@pytest.mark.parametrize("way, within_s, named", [
    ("killed", 10, r"rank +: 1 \(local_rank: 1\)\s+exitcode +: -9"),
    ("stopped", 10, r"traceback : rank 1 does not answer \(.* stopped\) since step 3"),
    ("stuck", 20, r"traceback : no rank has gone on .*rank 1 is (stuck since|at) step 3.*, in in_the_middle,"),
    ("raises", 10, r"traceback : rank 1 failed: ValueError: planted"),
])  # fmt: skip
@pytest.mark.parametrize("layout", [["--pp", 3], ["--dp", 3, "--zero", 1]], ids=["pp 3", "dp 3"])
def test_a_rank_that_fails_in_a_step_ends_the_others_and_is_named(way, within_s, named, layout, monkeypatch):
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    found = failure(way, list(map(str, layout)), ranks=3)
    assert "rank 1" in reported(found["output"])
    assert found["seconds"] < within_s * patience() and re.search(named, found["output"]), found["output"]
    assert subprocess.run(["pgrep", "-f", "failing_rank"], capture_output=True, text=True).stdout == ""
