import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.first_kernels.lab00 import study
from labs_helpers.measure import results
from labs_helpers.measure.roofs import Roofs

ROOFS = Roofs(1e10, 1e11, "float32")


@pytest.fixture
def small(monkeypatch):
    n = dict.fromkeys(study.sizes(), 64)
    monkeypatch.setattr(study, "sizes", lambda: {**n, "X · Y": 32})
    monkeypatch.setattr(study, "ROUNDS", 1)
    real = study.measure_rounds
    monkeypatch.setattr(
        study, "measure_rounds", lambda functions, **_: real(functions, rounds=1, warmup_ms=0, repeat_ms=0, min_runs=1)
    )


def test_one_record_for_each_operation_with_the_count_that_was_given(small):
    def count(n, itemsize, peak_flops, bandwidth):
        assert (peak_flops, bandwidth) == (ROOFS.flops, ROOFS.bandwidth)
        return dict.fromkeys(study.sizes(), (n, itemsize, "memory"))

    records = study.measure_operations(ROOFS, count)
    assert [r["name"] for r in records] == list(study.sizes())
    assert [r["flops"] for r in records] == list(study.sizes().values())
    assert all(r["median_ms"] > 0 and r["roof_flops"] == ROOFS.flops for r in records)


def test_the_operations_are_the_ones_that_are_counted():
    n = {name: 64 for name in study.sizes()}
    generator = torch.Generator().manual_seed(0)
    X, Y, v, V = (torch.randn(*shape, generator=generator) for shape in ((64, 64), (64, 64), (64,), (64, 32)))
    expected = {"X + Y": X + Y, "row sums of X": X.sum(1), "X · v": X @ v, "X · V": X @ V, "X · Y": X @ Y}
    for name, run in study._operations(n, "cpu", torch.float32).items():
        torch.testing.assert_close(run(), expected[name], msg=name)


def test_strides_leave_the_number_of_threads_alone(small, monkeypatch):
    threads = torch.get_num_threads()
    records = study.measure_strides((1, 4))
    assert [r["stride"] for r in records] == [1, 4] and torch.get_num_threads() == threads


@given(st.integers(1, 256), st.sampled_from((2, 4, 8)), st.sampled_from((32, 64, 128)))
def test_share_by_lines(stride, itemsize, line):
    share = study.share_by_lines(stride, itemsize, line)
    assert 0 < share <= 1 and (share == 1) == (stride == 1)
    assert study.share_by_lines(stride + 1, itemsize, line) <= share
    assert share >= 2 * itemsize / (line + itemsize)


def test_without_recorded_measurements_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path))
    assert study.recorded("stride") == {}
    assert "first_kernels.nvidia-h200.jsonl is missing" in capsys.readouterr().out


def test_of_several_recorded_runs_the_last_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path))
    for when, ms in (("2026-01-02T00:00:00+00:00", 2.0), ("2026-01-01T00:00:00+00:00", 1.0)):
        results.append(
            results.path_for("first_kernels", "nvidia-h200"),
            [
                {"kind": kind, "median_ms": ms, "on": {"machine": "NVIDIA H200", "time": when}}
                for kind in ("stride", "operation")
            ],
        )
    ((label, records),) = study.recorded("stride").items()
    assert label == "NVIDIA H200, recorded"
    assert [(r["kind"], r["median_ms"]) for r in records] == [("stride", 2.0)]


def test_the_reader_s_last_run_follows_the_recorded_one(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path / "shipped"))
    monkeypatch.setenv("LABS_RECORDS", str(tmp_path / "own"))

    def write(folder, machine, *records, **on):
        path = results.path_for("first_kernels", machine, tmp_path / folder)
        results.append(path, [{"kind": "stride", "on": {"machine": machine} | on} | record for record in records])

    write("shipped", "NVIDIA H200", {"median_ms": 1.0}, time="2026-01-01T00:00:00+00:00")
    write("own", "4-core CPU", {"median_ms": 2.0}, time="2026-01-01T00:00:00+00:00")
    write("own", "4-core CPU", {"median_ms": 3.0}, time="2026-01-02T00:00:00+00:00")
    write("own", "Some CPU", {"older_ms": 2.0}, time="2026-01-01T00:00:00+00:00")  # lacks what the figure needs
    write("own", "Other CPU", {"median_ms": 2.0})  # of an unknown time
    found = study.recorded("stride")
    assert {machine: [r["median_ms"] for r in records] for machine, records in found.items()} == {
        "NVIDIA H200, recorded": [1.0],
        "4-core CPU, your run": [3.0],
    }
