"""Test the helpers that start processes in tests."""

import os
import signal
import subprocess
import sys

import pytest

from tests.launch.deadlocks import left
from tests.processes import PATIENCE_S, started


@pytest.fixture
def ignored():
    """SIGINT is ignored, as in a background job of a script."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_what_is_started_where_it_is_ignored(ignored):
    with started(["sleep", "600"]) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == -signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_nothing_is_left_of_what_is_started_when_a_test_fails(tmp_path):
    source = "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\nprint(flush=True)\ninput()"
    environ = os.environ | {"TOKEN": str(tmp_path)}
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with pytest.raises(KeyError), started([sys.executable, "-c", source], env=environ, **streams) as process:
        process.stdout.readline()
        assert len(left(str(tmp_path))) == 2
        raise KeyError("planted")
    assert left(str(tmp_path)) == []
