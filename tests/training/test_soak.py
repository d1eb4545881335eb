"""Kill a rank with kill −9 again and again: the training resumes from its last checkpoint and ends with the same
curve."""

import json
import math
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from labs_helpers.launch.mpirun import RanksFailed, mpirun
from labs_helpers.launch.process import run
from labs_helpers.training.checkpoints import Checkpoints
from tests.launch.deadlocks import left

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "mpi_scripts/train_2d.py"
EVERY_LAYOUT = Path(__file__).with_name("every_layout.py")
MPICH = ROOT / ".venv-mpich"
STEPS, EVERY, KILLS = 120, 10, 50
TRAINING = "--data text --length 16 --width 32 --heads 4 --batch 8 --dtype float64 --report 1".split()
LAYOUTS = [(1, 1, 1), (2, 1, 1), (1, 1, 2), (2, 1, 2), (1, 2, 2), (2, 2, 1)]  # dp, pp, tp
BOUND = 1e-5
pytestmark = pytest.mark.soak


class Training(threading.Thread):
    """train_2d.py on its way. scratch: where the launcher keeps what the ranks print, and their process numbers."""

    def __init__(self, scratch, layout, *options):
        super().__init__()
        self.scratch, self.ranks, self.failure = scratch, math.prod(layout), None
        self.before = set(scratch.glob("ranks-*"))
        axes = [word for axis in zip(("--dp", "--pp", "--tp"), layout, strict=True) for word in axis]
        self.options = [*axes, "--zero", layout[0] - 1, "--steps", STEPS, *TRAINING, *options]
        self.start()

    def run(self):
        try:
            env = {"TOKEN": str(self.scratch), "OMPI_MCA_mpi_yield_when_idle": "1"}
            mpirun(SCRIPT, self.ranks, *self.options, timeout=300, env=env)
        except Exception as error:
            self.failure = error

    def file(self, name):
        """What this run's ranks have left under this name, as text; '' if there is nothing yet."""
        for folder in set(self.scratch.glob("ranks-*")) - self.before:
            if (folder / name).exists():
                return (folder / name).read_text(errors="replace")
        return ""

    def wait_for(self, name):
        while self.is_alive() and not self.file(name):
            self.join(0.005)

    def kill(self, rank):
        """SIGKILL to that rank, unless it has ended."""
        self.wait_for(f"{rank}.pid")
        if self.is_alive() and (told := self.file(f"{rank}.pid")):
            os.kill(int(told.split()[0]), signal.SIGKILL)
        self.join()


def curve(records):
    return json.loads(records.read_text().splitlines()[-1])["losses"]


def last_step(printed):
    steps = re.findall(r"step +(\d+) of", printed)
    return int(steps[-1]) if steps else None


def test_a_killed_training_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    choice = random.Random(0)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    whole = tmp_path / "whole.jsonl"
    training = Training(scratch, (1, 1, 1), "--out", whole, "--checkpoint", tmp_path / "whole", "--every", EVERY)
    begun = time.monotonic()
    training.wait_for("0.output")
    start_s = time.monotonic() - begun
    training.join()
    assert training.failure is None, training.failure
    steps_s = time.monotonic() - begun - start_s
    uninterrupted = curve(whole)

    kills, ended, in_training, number, reached = 0, 0, 0, 0, 0
    while kills < KILLS or reached:
        folder, records = tmp_path / str(number), tmp_path / f"{number}.jsonl"
        saving = ["--checkpoint", folder, "--every", EVERY, "--resume", "--out", records]
        layout = choice.choice(LAYOUTS)
        training = Training(scratch, layout, *saving)
        if kills < KILLS:
            if choice.random() < 0.8:  # in the training; else while it starts
                training.wait_for("0.output")
                training.join(choice.uniform(0, 0.9 * steps_s * (STEPS - reached) / STEPS))
            else:
                training.join(choice.uniform(0, start_s))
            victim = choice.randrange(training.ranks)
            training.kill(victim)
        training.join()
        assert left(str(scratch)) == []
        if training.failure is None:
            assert max(abs(a - b) for a, b in zip(curve(records), uninterrupted, strict=True)) < BOUND
            number, reached, ended = number + 1, 0, ended + 1
            continue
        kills += 1
        error = training.failure
        assert isinstance(error, RanksFailed) and not error.errors and victim in error.silent, error
        saved, damaged = Checkpoints(folder).latest()
        assert not damaged
        now = saved.about["step"] if saved else 0
        done = last_step(error.outputs[0])
        in_training += done is not None
        assert now >= reached and (done is None or now >= done - done % EVERY), (now, reached, done)
        reached = now
    print(f"{kills} kills, {in_training} of them in the training; {ended} trainings ended, each with the same curve")


@pytest.mark.parametrize("python", [sys.executable, MPICH / "bin/python"], ids=["this MPI", "MPICH"])
def test_every_layout_at_the_usual_size(python):
    if Path(python).is_relative_to(MPICH) and not any(MPICH.glob("lib/python*/site-packages/torch")):
        pytest.skip("no .venv-mpich with torch and scikit-learn: make mpich, and install them there")
    told = run([python, EVERY_LAYOUT, "40"], timeout=1000)
    assert told.endswith("every layout has the same loss curve\n"), told
