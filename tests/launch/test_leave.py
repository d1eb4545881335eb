"""Test the end of a rank of torch.distributed that names another one."""

import signal
import sys

import pytest
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from labs_helpers.launch import leave
from tests.processes import PATIENCE_S, started


def test_torchruns_summary_has_the_sentence_too(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    monkeypatch.setattr(leave.os, "_exit", sys.exit)
    with pytest.raises(SystemExit):
        leave.end_process("rank 1 does not answer.")
    failure = ProcessFailure(local_rank=0, pid=1, exitcode=1, error_file=str(tmp_path / "error.json"))
    assert failure.message == "rank 1 does not answer." and failure.timestamp > 0
    assert capsys.readouterr().err == "rank 1 does not answer.\n"


def test_stopped_processes_end_too_and_those_that_are_gone_do_not_matter(monkeypatch):
    monkeypatch.setattr(leave.os, "_exit", sys.exit)
    with started(["sleep", "1000"]) as stopped, started(["true"]) as gone:
        gone.wait(PATIENCE_S)
        stopped.send_signal(signal.SIGSTOP)
        with pytest.raises(SystemExit):
            leave.end_process("rank 1 does not answer.", [gone.pid, stopped.pid])
        assert stopped.wait(PATIENCE_S) == -signal.SIGKILL
