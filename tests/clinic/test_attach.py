"""Examine a program that knows nothing of the clinic."""

import re
import sys
from pathlib import Path

import pytest
import torch

from labs_helpers.clinic.attach import Attached
from labs_helpers.launch.process import ProcessFailed, run

ROOT, PROGRAM = Path(__file__).parents[2], Path(__file__).with_name("own_program.py")
TORCHRUN = ["torchrun", "--standalone", "--nproc-per-node", "2", "-m", "labs_helpers.clinic"]


def told(*arguments, timeout=120, **limits):
    return run([*TORCHRUN, *arguments], timeout=timeout, cwd=ROOT, **limits)


def test_a_report_and_a_diagnosis():
    said = told("--after", "2", "--steps", "3", str(PROGRAM), "reads")
    assert "steps 4 to 6" in said
    lines = dict(line.split()[:2] for line in said.splitlines() if line.startswith(" "))
    assert float(lines["waits"]) == 8 and float(lines["collectives"]) == 1
    assert "Diagnosis: waiting for values: the program reads values in every step." in said
    assert said.count("Diagnosis") == 1


@pytest.mark.parametrize("wrapped", [False, True], ids=["two optimizers", "one inside another"])
def test_a_step_ends_once_however_many_optimizers_update_in_it(wrapped, capsys):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in model]
    if wrapped:
        optimizers = [Outer(torch.optim.SGD(model.parameters(), lr=0.1))]
    with Attached(after=2, steps=3, quiet=99):
        for _ in range(6):
            model(torch.ones(2, 8)).square().mean().backward()
            for optimizer in optimizers:
                optimizer.step()
            norms = [p.norm().item() for p in model.parameters()]
    lines = dict(line.split()[:2] for line in capsys.readouterr().out.splitlines() if line.startswith(" "))
    assert float(lines["waits"]) == len(norms) == 4


class Outer(torch.optim.Optimizer):
    """An optimizer that leaves the update to another one."""

    def __init__(self, inner):
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self):
        self.inner.step()


@pytest.mark.soak
def test_a_program_that_hangs_says_where():
    with pytest.raises(ProcessFailed) as failed:
        told("--quiet", "1", str(PROGRAM), "hangs", timeout=20)
    for rank in (0, 1):
        where = rf"rank {rank}: no step for 1 s; it is in <module>, line \d+ of own_program.py: time.sleep\(600\)"
        assert re.search(where + "; its last collective: gloo:", failed.value.output)


@pytest.mark.soak
def test_a_program_that_is_too_short_or_missing_is_named():
    assert "the program took 10 steps, 15 are needed" in told(str(PROGRAM))
    with pytest.raises(ProcessFailed, match="there is no file nowhere.py"):
        run([sys.executable, "-m", "labs_helpers.clinic", "nowhere.py"], timeout=60, cwd=ROOT)
    with pytest.raises(ProcessFailed, match="--steps is 0, at least 1"):
        run([sys.executable, "-m", "labs_helpers.clinic", "--steps", "0", str(PROGRAM)], timeout=60, cwd=ROOT)
