import sys
from pathlib import Path

import pytest

from labs_helpers.course import first_aid
from labs_helpers.course.first_aid import CHECKS, Trouble, examine
from labs_helpers.launch.process import ProcessFailed, ProcessTimeout, run

ROOT = Path(__file__).parents[2]


def test_this_machine_is_examined():
    try:
        printed = run([sys.executable, "-m", "labs_helpers.course.first_aid"], timeout=100, cwd=ROOT)
    except ProcessFailed as error:  # a small disk or /dev/shm
        printed = error.output
    *lines, verdict = printed.splitlines()
    assert len(lines) == len(CHECKS) and "Traceback" not in printed
    for expected in (
        "torch ",
        "Triton ",
        "MPI: 2 ranks",
        "Jupyter: a kernel started",
        "ipyparallel ",
        "nbval ",
    ):
        assert any(line.startswith(f"[OK]   {expected}") for line in lines), expected
    assert verdict == "All is well." or any(line.startswith("[FAIL]") for line in lines)


def test_an_empty_environment_gets_a_fix_a_component(tmp_path):
    run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty"], timeout=60)
    with pytest.raises(ProcessFailed) as caught:
        run([tmp_path / "empty/bin/python", "-m", "labs_helpers.course.first_aid"], timeout=60, cwd=ROOT)
    printed = caught.value.output
    assert caught.value.returncode == 1 and "Traceback" not in printed
    assert "[OK]   Python" in printed
    for component in ("torch", "triton", "gpu", "jupyter", "ipyparallel", "nbval"):
        (line,) = [line for line in printed.splitlines() if f" {component}: " in line]
        assert line.startswith("[FAIL]") and "Fix: make setup" in line
    assert "No module named 'torch'" in printed


def raises(error):
    def component():
        raise error

    return component


@pytest.mark.parametrize(
    "error, status, said",
    [
        (Trouble("it is broken", "mend it"), "FAIL", "it is broken. Fix: mend it"),
        (Trouble("it is missing", "get it", optional=True), "--", "it is missing. Fix: get it"),
        (ProcessFailed(["x"], 1, "Traceback\nImportError: no x\n"), "FAIL", "ImportError: no x"),
        (ProcessTimeout(["x"], -15, "", "did not end within 5 s"), "FAIL", "did not end within 5 s"),
        (FileNotFoundError("'mpirun' was not found"), "FAIL", "'mpirun' was not found"),
        (RuntimeError("anything else"), "FAIL", "component: anything else"),
    ],
)
def test_whatever_a_check_raises_is_a_finding(error, status, said):
    found, text = examine(raises(error))
    assert found == status and said in text and "Fix: " in text


def test_exit_status_counts_failures_only(monkeypatch, capsys):
    monkeypatch.setattr(first_aid, "CHECKS", [lambda: "fine", raises(Trouble("x", "y", optional=True))])
    assert first_aid.main() == 0
    monkeypatch.setattr(first_aid, "CHECKS", [raises(Trouble("x", "y")), lambda: "fine"])
    assert first_aid.main() == 1
    assert "1 to fix" in capsys.readouterr().out


def test_two_mpis_that_differ_are_recognised(monkeypatch):
    monkeypatch.setattr(first_aid, "run", lambda *_, **__: "1 Open MPI v4.1.2, x\n1 Open MPI v4.1.2, x\n")
    assert examine(first_aid.mpi)[0] == "FAIL" and "differ" in examine(first_aid.mpi)[1]


def test_a_small_shared_memory_is_named(monkeypatch):
    usage = type(first_aid.shutil.disk_usage("/"))
    monkeypatch.setattr(first_aid.shutil, "disk_usage", lambda _: usage(64 * 2**20, 0, 0))
    assert "--shm-size" in examine(first_aid.shared_memory)[1]
    assert "TMPDIR" in examine(first_aid.disk)[1]
