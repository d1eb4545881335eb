"""Lab 12's figure of speed-ups draws recorded products beside the prediction, or says that there are none."""

import pytest

from labs_helpers.measure import results
from labs_helpers.quantization.lab12 import measured, pictures

ROWS = 1, 64, 4096
CURVES = {"int8": [2.0, 1.9, 1.0], "int4, groups of 128": [3.8, 3.0, 1.0]}
TIMES = {  # (study, M, format, name): µs
    ("few", 1, "bf16", "F.linear"): 30.0, ("few", 1, "bf16", "few_rows"): 28.0, ("few", 1, "int8", "few_rows"): 16.0,
    ("few", 1, "int8", "torch.compile"): 14.0, ("few", 1, "int4", "few_rows"): 10.0,
    ("few", 64, "bf16", "F.linear"): 36.0, ("few", 64, "int8", "few_rows"): 24.0,
    ("many", 64, "int8", "fused"): 20.0, ("many", 4096, "bf16", "F.linear"): 600.0,
    ("many", 4096, "int8", "fused"): 750.0, ("many", 4096, "int8", "buffer"): 625.0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path))
    monkeypatch.setenv("LABS_RECORDS", str(tmp_path / "own"))


def drawn():
    fig = pictures.draw_speed_ups(ROWS, CURVES, 200, 3, measured.recorded_speed_ups(14336, 4096))
    hollow = [line for line in fig.axes[0].get_lines() if line.get_label() == "_measured"]
    return [dict(zip(*line.get_data(), strict=True)) for line in hollow], fig.legends[0].get_title().get_text()


def test_recorded_products_are_drawn_beside_the_prediction(tmp_path):
    for (study, M, format, name), us in TIMES.items():
        record = {"K": 4096, "N": 14336, "M": M, "format": format, "name": name, "us": us, "roof_us": us / 2}
        path = results.path_for(f"quantization-{study}-rows", "NVIDIA H200", tmp_path)
        on = {"on": {"machine": "NVIDIA H200"}}
        results.append(path, [record | on, record | on | {"K": 8192, "us": 1.0}])
    results.append(path, {"K": 4096, "N": 14336, "M": 1, "format": "int8", "name": "few_rows", "error": "wrong"} | on)
    (int8, int4), note = drawn()
    assert int8 == pytest.approx({1: 28 / 16, 64: 36 / 20, 4096: 600 / 625})
    assert int4 == pytest.approx({1: 2.8})
    assert "NVIDIA H200 (recorded)" in note


def test_without_a_record_the_figure_says_so():
    points, note = drawn()
    assert points == [] and "Not recorded on an H200 yet" in note
