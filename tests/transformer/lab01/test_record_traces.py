"""Test the command that records traces: the lab finds and reads the files that it writes."""

import dataclasses
import json

import pytest

from labs_helpers.draw.memory_timeline import draw_memory
from labs_helpers.draw.timeline import draw_timeline
from labs_helpers.measure import results, trace
from labs_helpers.measure.machine import this_machine
from labs_helpers.transformer.lab01 import record_traces

HERE = this_machine().label


def recorded_here(name, monkeypatch, folder):
    monkeypatch.setenv("LABS_RECORDS", str(folder))
    assert record_traces.main([name]) == 0
    return record_traces.recorded(name, HERE)


def parts(found):
    """Names of the outermost ranges, in order, each once."""
    names, reached = {}, 0.0
    for event in found.events:
        if event["cat"] == "user_annotation" and event["ts"] >= reached:
            names[event["name"]] = True
            reached = event["ts"] + event["dur"]
    return list(names)


@pytest.mark.parametrize(
    "name, ranges",
    [
        ("forward", ["scores", "mask", "softmax", "values"]),
        ("step", ["forward", "backward", "update"]),
        ("experts-looped", ["router", "dispatch", "experts", "combine"]),
        ("experts-batched", ["router", "dispatch", "experts", "combine"]),
    ],
)
def test_a_trace_is_recorded_and_found(name, ranges, monkeypatch, tmp_path):
    found = recorded_here(name, monkeypatch, tmp_path)
    assert parts(found) == ranges
    assert trace.launches(found.events) > 20 and 0 < trace.busy(found.events) < 1
    path = tmp_path / "traces" / results.path_for(name, HERE).name.replace(".jsonl", ".json.gz")
    assert path.stat().st_size <= record_traces.LARGEST
    draw_timeline(found.events)


def test_memory_is_recorded_and_found(monkeypatch, tmp_path):
    monkeypatch.setenv("LABS_RECORDS", str(tmp_path))
    assert record_traces.main(["memory"]) == 0
    found = record_traces.recorded_memory(HERE)
    base, timeline = found["base"], found["timeline"]
    assert base["AdamW's moments"] == 2 * base["parameters"] > 0
    assert [name for _, name in timeline["marks"]] == ["forward", "backward", "update"]
    assert timeline["peak"] > sum(base.values()) and found["on"]["machine"] == HERE
    assert record_traces.path_of("memory", folder=tmp_path).stat().st_size <= record_traces.LARGEST
    draw_memory(timeline, base=base)


def test_a_forward_pass_too_large_for_a_file_is_recorded_with_two_layers(monkeypatch):
    monkeypatch.setattr(record_traces, "LARGEST", 10)
    monkeypatch.setitem(record_traces.SIZES, "tiny", dataclasses.replace(record_traces.SIZES["tiny"], layers=3))
    monkeypatch.setitem(record_traces.SIZES, "small", record_traces.SIZES["tiny"])
    events = record_traces.forward().events
    assert sum(e["name"] == "softmax" for e in events if e["cat"] == "user_annotation") == 2


def test_one_failure_does_not_keep_the_others_from_being_recorded(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(record_traces.RECORDINGS, "forward", lambda: 1 / 0)
    monkeypatch.setitem(record_traces.RECORDINGS, "memory", lambda: {"timeline": {"peak": 7}})
    assert record_traces.main(["forward", "memory", "--out", str(tmp_path)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert json.loads(record_traces.path_of("memory", folder=tmp_path).read_text()) == {"timeline": {"peak": 7}}


def test_a_maintainer_records_for_the_lab(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path))
    monkeypatch.setitem(record_traces.RECORDINGS, "memory", lambda: {"timeline": {"peak": 7}})
    assert record_traces.main(["memory", "--record"]) == 0
    assert record_traces.recorded_memory(HERE) == {"timeline": {"peak": 7}}
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit):
        record_traces.main(["memory", "--out", str(tmp_path / "file")])
    assert "is a file" in capsys.readouterr().err


def test_what_is_not_there_is_said_with_the_command_that_makes_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path))
    for find in (lambda: record_traces.recorded("step"), record_traces.recorded_memory):
        with pytest.raises(FileNotFoundError, match=r"nvidia-h200\.json.*python -m labs_helpers\.transformer\.lab01"):
            find()
    with pytest.raises(SystemExit):
        record_traces.main(["steps"])
    assert "there is no steps; there are forward" in capsys.readouterr().err
