"""Test the end of a rank of torch.distributed that names another one."""

import sys

import pytest
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from labs_helpers.launch import leave


def test_torchruns_summary_has_the_sentence_too(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    monkeypatch.setattr(leave.os, "_exit", sys.exit)
    with pytest.raises(SystemExit):
        leave.end_process("rank 1 does not answer.")
    failure = ProcessFailure(local_rank=0, pid=1, exitcode=1, error_file=str(tmp_path / "error.json"))
    assert failure.message == "rank 1 does not answer." and failure.timestamp > 0
    assert capsys.readouterr().err == "rank 1 does not answer.\n"
