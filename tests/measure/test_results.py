import fcntl
import json
import math
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labs_helpers.measure import results

ROOT = Path(__file__).resolve().parents[2]

numbers = st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
values = st.none() | st.booleans() | numbers | st.text()
keys = st.text(min_size=1).filter(lambda key: "." not in key)
records = st.dictionaries(keys, values | st.lists(values, max_size=3), min_size=1, max_size=4)
in_one_folder = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def read(path):
    """The file's records by the standard library alone."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def rows(frame):
    """A frame's rows as dicts, without the cells that the record does not have."""
    missing = lambda value: isinstance(value, float) and math.isnan(value)  # noqa: E731
    return [{k: v for k, v in row.items() if not missing(v)} for row in frame.astype(object).to_dict("records")]


def load_quietly(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return results.load(path)


@in_one_folder
@given(st.lists(records, min_size=1, max_size=6))
def test_what_is_appended_is_what_is_in_the_file(tmp_path, written):
    path = tmp_path / "round_trip.jsonl"
    path.unlink(missing_ok=True)
    results.append(path, written[0])
    results.append(path, written[1:])
    assert read(path) == written
    frame = results.load(path)
    assert len(frame) == len(written) and frame.attrs["damaged"] == []


def test_a_frame_has_a_row_a_record_and_a_column_a_nested_key(tmp_path):
    path = tmp_path / "gemm.h200.jsonl"
    results.append(
        path,
        [
            {"n": 1024, "ms": 0.25, "on": {"machine": "H200", "mpi_settings": {"OMPI_MCA_osc": "x"}}},
            {"n": 2048, "ms": None, "tile": [64, 128], "on": {"machine": "H200"}},
        ],
    )
    frame = results.load(path)
    assert list(frame["n"]) == [1024, 2048] and list(frame["on.machine"]) == ["H200"] * 2
    assert frame["on.mpi_settings"][0] == {"OMPI_MCA_osc": "x"} and frame["tile"][1] == [64, 128]
    assert frame["ms"][0] == 0.25 and np.isnan(frame["ms"][1])


@in_one_folder
@given(st.lists(records, min_size=1, max_size=4), st.data())
def test_truncated_at_any_byte_only_the_last_record_is_lost_and_the_next_is_whole(tmp_path, written, data):
    path = tmp_path / "torn.jsonl"
    path.unlink(missing_ok=True)
    results.append(path, written)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole = content[:cut].count(b"\n")
    kept = len(load_quietly(path))
    # The record before the cut is whole too if the cut took its newline alone.
    assert kept in (whole, whole + 1)
    results.append(path, {"after": 1})
    frame = load_quietly(path)
    assert len(frame) == kept + 1 and frame["after"].iloc[-1] == 1


@pytest.mark.parametrize("damage", [b'{"n": 1', b"\xff\xfe", b"[1, 2]", b"7", b'{"n": NaN}', b"[" * 200_000])
def test_a_damaged_line_is_reported_by_number_and_the_rest_is_kept(tmp_path, damage):
    path = tmp_path / "gemm.cpu.jsonl"
    path.write_bytes(b'{"n": 1}\n' + damage + b'\n\n{"n": 3}\r\n')
    with pytest.warns(UserWarning, match=r"gemm\.cpu\.jsonl, line 2 is damaged"):
        frame = results.load(path)
    assert list(frame["n"]) == [1, 3] and frame.attrs["damaged"] == [2]


def test_an_empty_file_is_an_empty_frame(tmp_path):
    path = tmp_path / "empty.jsonl"
    path.touch()
    assert len(results.load(path)) == 0


def test_a_missing_file_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gemm\.h200\.jsonl; .*python -m labs_helpers\.gemm\.study"):
        results.load(tmp_path / "gemm.h200.jsonl")
    with pytest.raises(FileNotFoundError, match="make measure"):
        results.load(tmp_path / "gemm.h200.jsonl", command="make measure")


@pytest.mark.parametrize(
    "value, plain",
    [
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array(3), 3),
        (torch.tensor(0.5), 0.5),
        (torch.tensor(7), 7),
        ((1, 2), [1, 2]),
        (np.str_("text"), "text"),
    ],
)
def test_scalars_of_numpy_and_torch_become_plain(tmp_path, value, plain):
    results.append(tmp_path / "r.jsonl", {"value": value})
    (record,) = read(tmp_path / "r.jsonl")
    assert record["value"] == plain and type(record["value"]) is type(plain)


@pytest.mark.parametrize(
    "record, error, words",
    [
        ({"ms": float("nan")}, ValueError, "key 'ms': nan"),
        ({"ms": np.float32("inf")}, ValueError, "key 'ms': inf"),
        ({"on": {"times": [1.0, -math.inf]}}, ValueError, r"key 'on', key 'times'\[1\]: -inf"),
        ({"dtype": torch.float16}, TypeError, "key 'dtype': a dtype"),
        ({"x": torch.ones(3)}, TypeError, "key 'x': a Tensor"),
        ({"x": np.ones(1)}, TypeError, "key 'x': a ndarray"),
        ({"x": np.complex64(1j)}, TypeError, "key 'x': a complex"),
        ({1: 2}, TypeError, "the key 1"),
        (["n"], TypeError, "a record is a dict, not a list"),
        ("text", TypeError, "a record is a dict, not a str"),
    ],
)
def test_what_json_does_not_have_is_refused_and_nothing_is_written(tmp_path, record, error, words):
    path = tmp_path / "r.jsonl"
    results.append(path, {"n": 1})
    with pytest.raises(error, match="record 1.*" + words):
        results.append(path, [{"n": 2}, record])
    assert read(path) == [{"n": 1}]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    results.append(path, {"n": 1})
    write = os.write
    monkeypatch.setattr(results.os, "write", lambda handle, data: write(handle, data[:5]))
    with pytest.raises(OSError, match="disk full"):
        results.append(path, {"n": 2})
    monkeypatch.undo()
    assert read(path) == [{"n": 1}]


def test_the_file_is_locked_while_it_is_written(tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    write, locked = os.write, []

    def try_the_lock(handle, data):
        with path.open() as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                locked.append(True)
        return write(handle, data)

    monkeypatch.setattr(results.os, "write", try_the_lock)
    results.append(path, {"n": 1})
    monkeypatch.undo()
    assert locked == [True] and read(path) == [{"n": 1}]


WRITER = """
import sys
from labs_helpers.measure import results
path, writer = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for i in range(100):
    results.append(path, [{"writer": writer, "i": i, "half": half, "pad": "x" * 3000} for half in (0, 1)])
"""


def test_two_processes_appending_at_once_lose_nothing(tmp_path):
    path = tmp_path / "shared.jsonl"
    command = [sys.executable, "-c", WRITER, str(path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    writers = [
        subprocess.Popen([*command, name], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for name in "ab"
    ]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            writer.communicate(timeout=60)
            assert writer.returncode == 0
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    found = [(r["writer"], r["i"], r["half"]) for r in read(path)]
    assert sorted(found) == [(w, i, half) for w in "ab" for i in range(100) for half in (0, 1)]
    # The two records of one append stand together.
    assert all(found[i][:2] == found[i + 1][:2] for i in range(0, len(found), 2))


def test_provenance_is_a_record_and_says_where_and_when(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_COMMIT", "abc123")
    monkeypatch.setenv("OMPI_MCA_btl", "^ofi")
    monkeypatch.setenv("OMPI_MCA_orte_hnp_uri", "tcp://somewhere")
    found = results.provenance()
    results.append(tmp_path / "r.jsonl", {"on": found})
    assert read(tmp_path / "r.jsonl") == [{"on": found}]
    assert found["commit"] == "abc123" and found["torch"] == torch.__version__ and found["numpy"] == np.__version__
    assert found["mpi_settings"]["OMPI_MCA_btl"] == "^ofi" and "OMPI_MCA_orte_hnp_uri" not in found["mpi_settings"]
    assert found["time"].endswith("+00:00")


def test_the_commit_says_when_there_are_changes(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()

    monkeypatch.delenv("LABS_COMMIT", raising=False)
    monkeypatch.setattr(results, "ROOT", tmp_path)
    assert results._commit() is None
    git("init", "-q")
    assert results._commit() is None
    (tmp_path / "code.py").write_text("1")
    git("add", "."), git("commit", "-qm", "first")
    clean = results._commit()
    assert len(clean) >= 7 and git("rev-parse", "HEAD").startswith(clean)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "gemm.cpu.jsonl").write_text("{}\n")
    assert results._commit() == clean
    (tmp_path / "code.py").write_text("2")
    assert results._commit() == clean + "+"


def test_the_mpi_library_is_named_only_where_mpi_runs():
    code = """
import sys
from labs_helpers.measure import results
assert results._mpi_library() is None and "mpi4py" not in sys.modules
from mpi4py import MPI
print(results._mpi_library())
"""
    pytest.importorskip("mpi4py")
    # Alone and with itself: a process that no mpirun has started leaves its shared memory behind.
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMPI_MCA_btl": "self"}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert ("Open MPI" in answer.stdout or "MPICH" in answer.stdout) and answer.stdout.count("\n") == 1, answer.stderr


def test_where_results_belong(tmp_path, monkeypatch):
    monkeypatch.delenv("LABS_RESULTS", raising=False)
    assert results.results_dir() == ROOT / "results"
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path))
    assert results.path_for("gemm", "NVIDIA H200") == tmp_path / "gemm.nvidia-h200.jsonl"
    assert results.path_for("gemm", "2-core CPU (interpreter)").name == "gemm.2-core-cpu-interpreter.jsonl"
    with pytest.raises(ValueError, match="study"):
        results.path_for("../gemm")
