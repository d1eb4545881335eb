"""Test how a program ends: at its time limit, after an external error, after a bug, and when it is interrupted."""

import subprocess
import sys
import threading

import pytest

from labs_helpers.launch import program
from labs_helpers.launch.process import ProcessFailed
from tests.processes import PATIENCE_S


def ended(main, capsys):
    """(status, stderr) of a program that is run here."""
    with pytest.raises(SystemExit) as caught:
        program.run(main)
    return caught.value.code, capsys.readouterr().err


def raising(error):
    def main():
        raise error

    return main


@pytest.mark.parametrize(
    "error, said",
    [
        (PermissionError(13, "Permission denied", "/data/x.jsonl"), "/data/x.jsonl: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("the disk is gone"), "the disk is gone"),
        (MemoryError("Unable to allocate 47.7 GiB"), "not enough memory: Unable to allocate 47.7 GiB"),
        (MemoryError(), "not enough memory: MemoryError"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 9 bytes\nframe #0"),
            "not enough memory: [enforce fail] DefaultCPUAllocator: can't allocate memory: 9 bytes",
        ),
        (ProcessFailed(["ncu"], 3, "no counters\n"), "ncu\nended with status 3. Its output:\nno counters"),
    ],
)
def test_an_error_from_outside_is_a_sentence(error, said, capsys):
    assert ended(raising(error), capsys) == (1, f"{program.name()}: error: {said}\n")


@pytest.mark.parametrize("error", [ValueError("no such size"), RuntimeError("wrong"), KeyError("loss")])
def test_a_bug_keeps_its_traceback(error):
    with pytest.raises(type(error)) as caught:
        program.run(raising(error))
    assert caught.value is error


def test_an_interrupt_is_one_line(capsys):
    assert ended(raising(KeyboardInterrupt), capsys) == (130, f"{program.name()}: error: interrupted\n")


def test_mains_own_status_is_the_programs(capsys):
    assert ended(lambda: 3, capsys) == (3, "")
    assert program.run(lambda: 0) is None is program.run(lambda: None)


SOURCE = """
import threading
from labs_helpers.launch import program

def main():
    program.Parser(limit=3600).parse_args()
    print("begun", end="")
    threading.Lock().acquire() and threading.Semaphore(0).acquire()

program.run(main)
"""


def test_the_time_limit_ends_a_program_that_waits_for_ever():
    command = [sys.executable, "-c", SOURCE, "--limit", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == program.TIMED_OUT and done.stdout == "begun"
    assert done.stderr == "-c: error: not finished after 0.1 s, its time limit; --limit S sets the limit to S seconds\n"


def test_time_is_counted_while_a_program_runs_and_only_then():
    def timers():
        return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]

    def main():
        program.Parser().parse_args(["--limit", "500"])
        program.start_limit(1000)
        assert [timer.interval for timer in timers() if not timer.finished.is_set()] == [1000]

    program.run(main)
    assert all(timer.finished.is_set() for timer in timers())
    program.Parser().parse_args(["--limit", "0.001"])  # as a test does that calls main
    assert all(timer.finished.is_set() for timer in timers())


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "soon"])
def test_a_limit_is_a_positive_number(text, capsys):
    with pytest.raises(SystemExit):
        program.Parser().parse_args([f"--limit={text}"])
    assert "argument --limit: " in capsys.readouterr().err
