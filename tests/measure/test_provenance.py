"""Test that a record says where and when it was measured."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from labs_helpers.measure import provenance, results

ROOT = Path(__file__).resolve().parents[2]


def test_provenance_is_a_record_and_says_where_and_when(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_COMMIT", "abc123")
    monkeypatch.setenv("OMPI_MCA_btl", "^ofi")
    monkeypatch.setenv("OMPI_MCA_orte_hnp_uri", "tcp://somewhere")
    found = provenance.provenance()
    results.append(tmp_path / "r.jsonl", {"n": 1, "on": found})
    (record,) = results.load(tmp_path / "r.jsonl").to_dict("records")
    assert record == {"n": 1} | {f"on.{key}": value for key, value in found.items()}
    assert found["commit"] == "abc123" and found["torch"] == torch.__version__ and found["numpy"] == np.__version__
    assert found["mpi_settings"]["OMPI_MCA_btl"] == "^ofi" and "OMPI_MCA_orte_hnp_uri" not in found["mpi_settings"]
    assert found["time"].endswith("+00:00")


def test_the_commit_says_when_there_are_changes(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout.strip()

    monkeypatch.delenv("LABS_COMMIT", raising=False)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    assert provenance._commit() is None
    git("init", "-q")
    assert provenance._commit() is None
    (tmp_path / "code.py").write_text("1")
    git("add", "."), git("commit", "-qm", "first")
    clean = provenance._commit()
    assert len(clean) >= 7 and git("rev-parse", "HEAD").startswith(clean)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "gemm.cpu.jsonl").write_text("{}\n")
    assert provenance._commit() == clean
    (tmp_path / "code.py").write_text("2")
    assert provenance._commit() == clean + "+"


def test_the_mpi_library_is_named_only_where_mpi_runs():
    code = """
import sys
from labs_helpers.measure import provenance
assert provenance._mpi_library() is None and "mpi4py" not in sys.modules
from mpi4py import MPI
print(provenance._mpi_library())
"""
    pytest.importorskip("mpi4py")
    # Alone and with itself: a process that no mpirun has started leaves its shared memory behind.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMPI_MCA_btl": "self"}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert ("Open MPI" in answer.stdout or "MPICH" in answer.stdout) and answer.stdout.count("\n") == 1, answer.stderr
