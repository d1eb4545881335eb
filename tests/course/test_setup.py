"""The set-up cell: what it prints, refuses, and what it installs on Colab."""

import importlib.metadata
from pathlib import Path

import pytest

from labs_helpers.course import lab_setup as module
from labs_helpers.course import setup as set_up
from labs_helpers.course.scoreboard import SCORES


@pytest.fixture(autouse=True)
def same_lab_afterwards(monkeypatch):
    monkeypatch.setattr(SCORES, "lab", SCORES.lab)
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)


def test_it_says_what_it_runs_on_and_names_the_lab(capsys):
    set_up("02")
    out = capsys.readouterr().out
    assert out.startswith("Lab 02 · ran on ") and "Triton" in out and SCORES.lab == "02"


@pytest.mark.parametrize("lab", ["2", 2])
def test_a_lab_s_number_needs_no_zero(lab):
    set_up(lab)
    assert SCORES.lab == "02"


@pytest.mark.parametrize("lab", ["22", 22, "abc", "", None])
def test_an_unknown_lab_is_refused_with_those_that_there_are(lab):
    with pytest.raises(ValueError, match="no lab .*The labs are: 00, 01"):
        set_up(lab)


def test_everything_the_labs_need_is_found_installed_here():
    assert module.missing_requirements() == []


def test_on_colab_what_is_missing_is_installed_and_colab_s_own_packages_are_held(monkeypatch):
    """Only pip itself is replaced: a look at the command and at the constraints it gets."""
    seen = {}

    def pip(command, **_):
        seen["command"] = command
        seen["constraints"] = Path(command[command.index("--constraint") + 1]).read_text().split()

    real = importlib.metadata.version

    def version(name):
        if name in ("mpi4py", "jupyterlab"):
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(module.importlib.metadata, "version", version)
    monkeypatch.setattr(module, "run", pip)
    module.complete_colab()
    assert seen["command"][-1].startswith("mpi4py") and "jupyterlab" not in " ".join(seen["command"])
    assert f"torch=={real('torch')}" in seen["constraints"] and f"triton=={real('triton')}" in seen["constraints"]
    assert any(line.startswith("ipykernel==") for line in seen["constraints"])


def test_on_colab_nothing_is_installed_when_nothing_is_missing(monkeypatch):
    monkeypatch.setattr(module, "run", lambda *a, **k: pytest.fail("pip was started"))
    module.complete_colab()
