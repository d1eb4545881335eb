"""Test that the study times only correct candidates, and that its figures draw the record."""

import pandas
import pytest
import torch

from labs_helpers.course.prediction import Prediction
from labs_helpers.draw import figures
from labs_helpers.gemm import charts, study
from labs_helpers.gemm.lab02 import pictures
from labs_helpers.gemm.lab02.time_here import time_here
from labs_helpers.measure import results
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import as_text


@pytest.fixture(scope="module")
def record():
    return study.load("nvidia-h200")


def test_a_measurement_has_a_record_for_each_size_and_candidate():
    records = study.measure((32, 64), dtype=torch.float32, rounds=1, repeat_ms=1, compile_=False, autotune=False)
    assert {r["M"] for r in records} == {32, 64} and {r["name"] for r in records} >= {study.EAGER, study.ALONE}
    assert all(r["median_ms"] > 0 and r["relative_error"] < 1e-5 and r["runs"] >= 5 for r in records)
    head, *lines = as_text(study.table(frame(records))).splitlines()
    assert head.split()[-2:] == ["×", "eager"] and len(lines) == len(records)
    assert all(line.endswith("1.00") for line in lines if f" {study.EAGER} " in line)


def test_a_wrong_candidate_is_never_timed():
    wrong = {"no ReLU": lambda a, b, c: a @ b + c}
    with pytest.raises(ValueError, match="no ReLU at 32×32×32: relative error"):
        study.measure((32,), rounds=1, repeat_ms=1, compile_=False, autotune=False, extra=wrong)


def test_a_compiler_that_fails_leaves_its_candidate_out_with_a_word(capsys):
    def broken(a, b, c):
        raise torch._dynamo.exc.BackendCompilerFailed(lambda: None, RuntimeError("no linker"), None)

    records = study.measure((32,), rounds=1, repeat_ms=1, compile_=False, autotune=False, extra={"broken": broken})
    assert "broken" not in {r["name"] for r in records} and study.EAGER in {r["name"] for r in records}
    assert "broken is not timed" in capsys.readouterr().out


def test_the_command_appends_records_with_where_they_came_from(tmp_path, capsys):
    out = tmp_path / "gemm.jsonl"
    study.main(["--sizes", "32", "--rounds", "1", "--out", str(out)])
    frame = results.load(out)
    assert set(frame["M"]) == {32} and frame["on.torch"].notna().all() and "records appended" in capsys.readouterr().out


def test_the_committed_record_is_whole_and_says_where_it_is_from(record):
    assert record.attrs["damaged"] == [] and (record["on.machine"] == "NVIDIA H200").all()
    assert record[["on.driver", "on.torch", "on.triton", "on.commit", "on.time"]].notna().all().all()
    for n in study.SIZES:
        assert {study.ALONE, study.EAGER, study.OURS, "torch.compile, max-autotune"} <= set(
            record[record["M"] == n]["name"]
        )
    assert (record["p20_ms"] <= record["median_ms"]).all() and (record["median_ms"] <= record["p80_ms"]).all()


def test_figures_draw_the_record(record):
    drawn = charts.draw_speedup({"NVIDIA H200": record, "again": record}, Prediction("?", 1.3))
    lines = {line.get_label(): line for line in drawn.axes[0].get_lines()}
    at_2048 = charts.squares(record).query("M == 2048").set_index("name")["median_ms"]
    assert lines[study.OURS].get_ydata()[1] == pytest.approx(at_2048[study.EAGER] / at_2048[study.OURS])
    assert len(drawn.axes) == 2
    for fig in (drawn, charts.draw_order(record), charts.draw_ladder(record, 2048)):
        assert len(figures.png(fig)) < 100_000


def test_orders_are_drawn_from_zero_and_named_where_the_runs_spread_less(record):
    drawn = charts.draw_order(record)
    first, second = (ax.get_ylim() for ax in drawn.axes)
    assert first == second and first[0] <= 0 < first[1]
    assert drawn.get_suptitle() == "The worst order costs 4% at n = 8192, 17% at n = 16384"


def test_the_ladder_shows_how_far_runs_spread(record):
    (spreads,) = {len(ax.collections) for ax in charts.draw_ladder(record, 2048).axes}
    assert spreads >= 8


def test_a_prediction_that_was_not_given_is_not_drawn(record):
    with_it = charts.draw_speedup({"H200": record}, Prediction("?", 1.3))
    without = charts.draw_speedup({"H200": record}, Prediction("?"))
    assert len(with_it.axes[0].get_lines()) == len(without.axes[0].get_lines()) + 1


def test_pictures_draw_what_was_counted():
    import numpy as np

    writer = np.repeat(np.repeat([[0, 1], [2, -1]], 4, 0), 8, 1)
    tiles = pictures.draw_tiles(writer, (2, 2))
    texts = [text.get_text() for text in tiles.axes[0].texts]
    assert texts == ["0", "(0, 0)", "2", "(0, 1)", "1", "(1, 0)"]  # a GPU takes the first axis fastest
    reuse = pictures.draw_reuse(64, [16, 32], [131072, 65536], 4, Prediction("?"))
    formula, counted = reuse.axes[0].get_lines()
    assert counted.get_ydata() == pytest.approx([formula.get_ydata()[0], formula.get_ydata()[-1]])
    orders = pictures.draw_orders({"rows": [(0, 0), (0, 1)], "columns": [(0, 0), (0, 1)]}, 1, 2, wave=1)
    assert orders.axes[0].images[0].get_array().tolist() == [[0, 1]]
    assert [tick.get_text() for tick in orders.axes[-1].get_yticklabels()] == ["first", "last"]
    assert pictures.draw_misses([1, 2], [9, 4], 9).axes[0].get_lines()[0].get_ydata().tolist() == [9, 4]


def test_time_here_labels_the_machine():
    ((label, frame),) = time_here(lambda a, b, c: torch.relu(a @ b + c)).items()
    assert isinstance(frame, pandas.DataFrame) and label
