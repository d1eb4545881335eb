import itertools
import json
import math
import os
import resource
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from filelock import FileLock, Timeout
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labs_helpers.measure import results

ROOT = Path(__file__).resolve().parents[2]
# As files were written before a run had a line of its own: every record with the whole of where it was measured.
OLD_LAYOUT = """\
{"study": "gemm", "M": 1024, "ms": 0.25, "on": {"machine": "NVIDIA H200", "mpi": null, "mpi_settings": {}}}
{"study": "gemm", "M": 2048, "ms": null, "on": {"machine": "NVIDIA H200", "mpi": null, "mpi_settings": {}}, "turns": 3}
{"study": "gemm", "M": 4096, "on": {"machine": "T4", "mpi": "Open MPI", "mpi_settings": {"OMPI_MCA_btl": "self"}}}
"""

numbers = st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
values = st.none() | st.booleans() | numbers | st.text()
keys = st.text(min_size=1).filter(lambda key: "." not in key and key not in ("run", "on"))
records = st.dictionaries(keys, values | st.lists(values, max_size=3), min_size=1, max_size=4)
places = st.fixed_dictionaries({"machine": st.sampled_from("ab")}, optional={"settings": st.just({"n": "1"})})
placed = st.builds(lambda record, on: record | {"on": on}, records, places)
in_one_folder = settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def read(path):
    """The file's lines by the standard library alone."""
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


def in_the_old_layout(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


@in_one_folder
@given(st.lists(placed | records, min_size=1, max_size=8))
def test_a_file_says_what_it_would_say_with_everything_in_every_record(tmp_path, written):
    path, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    path.unlink(missing_ok=True)
    results.append(path, written[:3])
    results.append(path, written[3:])
    in_the_old_layout(old, written)
    pandas.testing.assert_frame_equal(results.load(path), results.load(old), check_exact=True)


def test_where_records_were_measured_is_written_once(tmp_path):
    path = tmp_path / "r.jsonl"
    here, there = {"machine": "H200", "mpi_settings": {}}, {"machine": "H200", "mpi_settings": {"OMPI_MCA_btl": "self"}}
    results.append(path, [{"n": n, "on": there if n == 3 else here} for n in (1, 2, 3, 4)])
    results.append(path, {"n": 5, "on": here})
    first, one, two, second, three, four, third, five = read(path)
    assert [first["on"], second["on"], third["on"]] == [here, there, here]
    assert len({first["run"], second["run"], third["run"]}) == 3
    of = {1: first, 2: first, 3: second, 4: first, 5: third}
    assert [one, two, three, four, five] == [{"run": run["run"], "n": n} for n, run in of.items()]
    assert list(results.load(path)["on.mpi_settings"]) == [{}, {}, there["mpi_settings"], {}, {}]


def test_a_file_of_the_old_layout_loads_as_ever_and_goes_on_in_the_new(tmp_path):
    path = tmp_path / "gemm.nvidia-h200.jsonl"
    path.write_text(OLD_LAYOUT)
    frame = results.load(path)
    assert list(frame) == ["study", "M", "ms", "on.machine", "on.mpi", "on.mpi_settings", "turns"]
    assert list(frame["on.machine"]) == ["NVIDIA H200", "NVIDIA H200", "T4"] and list(frame["M"]) == [1024, 2048, 4096]
    assert frame["on.mpi_settings"][2] == {"OMPI_MCA_btl": "self"} and frame["turns"][1] == 3
    results.append(path, {"study": "gemm", "M": 8192, "on": {"machine": "A100"}})
    assert path.read_text().startswith(OLD_LAYOUT)
    mixed = results.load(path)
    assert list(mixed) == list(frame) and mixed.attrs["damaged"] == []
    pandas.testing.assert_frame_equal(mixed[:3], frame, check_dtype=False)
    assert mixed["on.machine"][3] == "A100" and mixed["M"][3] == 8192


@pytest.mark.parametrize("damage", [None, b"", b'{"run": "', b"[]"])
def test_records_whose_first_line_is_damaged_are_kept_and_said_to_be_from_nowhere(tmp_path, damage):
    path = tmp_path / "r.jsonl"
    results.append(path, [{"n": n, "on": {"machine": "lost"}} for n in (1, 2)])
    results.append(path, {"n": 3, "on": {"machine": "H200"}})
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rest if damage is None else [damage + b"\n", *rest]))
    start = 1 if damage is None else 2
    with pytest.warns(UserWarning) as said:
        frame = results.load(path)
    run = json.loads(first)["run"]
    assert f"from line {start} on: the first line of run {run!r} is damaged or missing" in str(said[-1].message)
    assert list(frame["n"]) == [1, 2, 3] and list(frame["on.machine"])[2] == "H200"
    assert frame["on.machine"].isna().tolist() == [True, True, False] and list(frame["run"])[:2] == [run, run]
    assert frame.attrs["damaged"] == [*([1] if damage else []), start, start + 1]
    assert len(said) == (2 if damage else 1)


def test_the_key_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="record 1, key 'run'"):
        results.append(tmp_path / "r.jsonl", [{"n": 1}, {"run": 1}])
    assert not (tmp_path / "r.jsonl").exists()


@in_one_folder
@given(st.lists(placed, min_size=1, max_size=4), st.data())
def test_truncated_at_any_byte_only_what_follows_is_lost_and_the_next_record_is_whole(tmp_path, written, data):
    path = tmp_path / "torn.jsonl"
    path.unlink(missing_ok=True)
    results.append(path, written)
    whole, content = results.load(path), path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    lines = content.splitlines(keepends=True)
    ends = itertools.accumulate(map(len, lines))
    # The record before the cut is whole too if the cut took its newline alone.
    kept = sum(end - 1 <= cut for line, end in zip(lines, ends, strict=True) if b'"on": ' not in line)
    results.append(path, {"after": 1, "on": {"machine": "c"}})
    frame = load_quietly(path)
    assert len(frame) == kept + 1 and frame["after"].iloc[-1] == 1 and frame["on.machine"].iloc[-1] == "c"
    assert list(frame["on.machine"][:-1]) == list(whole["on.machine"][:kept])


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


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "r.jsonl"
    results.append(path, {"n": 1})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, limits[1]))
    try:
        with pytest.raises(OSError, match="disk full") as caught:
            results.append(path, {"n": 2})
        assert caught.value.filename == str(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert read(path) == [{"n": 1}]


def test_the_file_is_locked_while_it_is_written(tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    sync, locked = os.fsync, []

    def try_the_lock(handle):
        with pytest.raises(Timeout):
            FileLock(f"{path}.lock").acquire(blocking=False)
        locked.append(True)
        sync(handle)

    monkeypatch.setattr(results.os, "fsync", try_the_lock)
    results.append(path, {"n": 1})
    assert locked == [True] and read(path) == [{"n": 1}]


def test_a_writer_that_is_killed_leaves_no_lock(tmp_path):
    path = tmp_path / "r.jsonl"
    code = """
import os, signal, sys
from labs_helpers.measure import results
results.os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
results.append(sys.argv[1], {"n": 1})
"""
    killed = subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    results.append(path, {"n": 2})
    assert read(path) == [{"n": 1}, {"n": 2}]


WRITER = """
import sys
from labs_helpers.measure import results
path, writer = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for i in range(100):
    on = {"writer": writer, "i": i, "pad": "x" * 3000}
    results.append(path, [{"half": half, "pad": "x" * 3000, "on": on} for half in (0, 1)])
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
            writer.communicate(timeout=100)
            assert writer.returncode == 0
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    found = list(results.load(path)[["on.writer", "on.i", "half"]].itertuples(index=False, name=None))
    assert sorted(found) == [(w, i, half) for w in "ab" for i in range(100) for half in (0, 1)]
    # The two records of one append stand together.
    assert all(found[i][:2] == found[i + 1][:2] for i in range(0, len(found), 2))


def test_where_results_belong(tmp_path, monkeypatch):
    monkeypatch.delenv("LABS_RESULTS", raising=False)
    assert results.results_dir() == ROOT / "results"
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path))
    assert results.path_for("gemm", "NVIDIA H200") == tmp_path / "gemm.nvidia-h200.jsonl"
    assert results.path_for("gemm", "2-core CPU (interpreter)").name == "gemm.2-core-cpu-interpreter.jsonl"
    with pytest.raises(ValueError, match="study"):
        results.path_for("../gemm")
