"""Test that the committed sweeps are complete, agree with the lab's statements, and can be drawn."""

import math

import numpy as np
import pytest
from triton.runtime.errors import OutOfResources

from labs_helpers.course.prediction import Prediction
from labs_helpers.course.withheld import Withheld
from labs_helpers.draw import figures
from labs_helpers.gemm import Config
from labs_helpers.gemm.lab03 import compilers, exercises, pictures, rivals
from labs_helpers.gemm.lab03.pictures.space import tflops
from labs_helpers.gemm.tuning import compile_table, recorded, sweep
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.datasheet import DATASHEET


@pytest.fixture(scope="module")
def measured():
    return recorded.measured()


@pytest.fixture(scope="module")
def compiled():
    return recorded.compiled()


def test_the_sweep_is_whole(measured):
    assert set(recorded.shapes(measured)) == set(sweep.SHAPES)
    for shape in sweep.SHAPES:
        assert set(recorded.Recorded(measured, "fused_matmul", shape).rows) == set(grid())
    assert (measured["on.machine"] == "NVIDIA H200").all()
    assert (measured["median_ms"].notna() != measured["error"].notna()).all()
    assert (measured["relative_error"].dropna() < sweep.TOLERANCE).all()


def test_an_h100_was_swept_as_whole_and_the_pruner_loses_nothing_there():
    h100 = recorded.measured("nvidia-h100-80gb-hbm3")
    assert set(recorded.shapes(h100)) == set(sweep.SHAPES) and (h100["on.name"] == "NVIDIA H100 80GB HBM3").all()
    losses = pictures.kept_losses(h100, exercises.prune, DATASHEET["H100"])
    assert losses[:, -1].max() == 0


def test_held_out_shapes_are_whole_none_was_fitted_to_and_one_of_them_loses():
    rows, transposed = recorded.held_out(), recorded.held_out(layout="B transposed")
    assert recorded.shapes(transposed) == [(4096, 4096, 4096)] and len(transposed) == len(grid())
    assert len(recorded.shapes(rows)) == 3 and not set(recorded.shapes(rows)) & set(sweep.SHAPES)
    assert all(((shape, "rows") in sweep.HELD_OUT) for shape in recorded.shapes(rows))
    losses = pictures.kept_losses(rows, exercises.prune, DATASHEET["H200"])[:, -1]
    lost = dict(zip(recorded.shapes(rows), losses, strict=True))
    assert lost.pop((1536, 1536, 1536)) == pytest.approx(0.058, abs=5e-4) and set(lost.values()) == {0}


def test_what_a_stale_hit_costs(measured):
    away = {"strides": recorded.held_out(layout="B transposed"), "bucket": recorded.held_out()}
    stale = pictures.stale(measured, away).set_index(["change", "run at"])["slower by"]
    assert stale["strides", "4096³"] == pytest.approx(0.098, abs=5e-4)
    assert stale["bucket", "2176×4096×4096"] == pytest.approx(0.097, abs=5e-4)
    assert ("bucket", "512×8192×4096") not in stale.index  # no remembered shape is in its bucket


def test_in_no_way_of_measuring_is_the_sweep_s_winner_faster_than_the_default():
    rows = recorded.long_runs().pivot_table(index="how", columns="kernel", values="median_ms")
    assert (rows["fused_matmul, rank 1 of the sweep"] > rows["fused_matmul, default_config"]).all()
    assert (rows.loc["long"] > 1.1 * rows.loc["short"]).dropna().sum() == 3


def test_the_compiled_table_is_whole_and_says_which_triton_made_it(compiled):
    for target in compile_table.TARGETS:
        rows = compiled[compiled["target"] == target]
        assert {recorded.config_of(row) for row in rows.to_dict("records")} == set(grid())
        assert (rows["triton"].str.startswith("3.2") == (target == "sm_75")).all()
        assert (rows["tensor_core"] > 0).all()


@pytest.mark.parametrize(("chip", "equal"), [("T4", 132), ("A100", 136), ("H100", 144)])
def test_the_rule_of_shared_memory_agrees_with_the_compiler(compiled, chip, equal):
    sheet = DATASHEET[chip]
    rows = compiled[compiled["target"] == sheet.architecture].to_dict("records")
    answers = [(row, *exercises.resources(recorded.config_of(row), sheet)) for row in rows]
    assert all(shared <= row["shared"] for row, shared, *_ in answers)
    assert sum(shared == row["shared"] for row, shared, *_ in answers) == equal
    assert all(
        (verdict == "too large") == (row["shared"] > sheet.shared_bytes_per_block) for row, _, _, verdict in answers
    )
    assert all(row["spills"] > 0 for row, *_, verdict in answers if verdict == "spills")


def test_what_is_too_large_is_what_did_not_run(measured):
    for shape in sweep.SHAPES:
        bench = recorded.Recorded(measured, "fused_matmul", shape)
        for config in grid():
            large = exercises.resources(config, DATASHEET["H200"])[2] == "too large"
            assert math.isinf(bench.time(config)) == large
            if large:
                with pytest.raises(OutOfResources, match="shared memory"):
                    bench.run(config)


def test_a_recorded_bench_answers_with_the_recorded_error_and_time(measured):
    bench = recorded.Recorded(measured, "fused_matmul", (1024, 1024, 1024))
    config, row = next(iter(bench.rows.items()))
    error = float((bench.run(config) - bench.expected).norm() / bench.expected.norm())
    assert error == pytest.approx(row["relative_error"]) and bench.measure(config) == row["median_ms"]
    assert bench.ran == bench.timed == [config]
    with pytest.raises(ValueError, match="1×2×3 is not in the record"):
        recorded.Recorded(measured, "fused_matmul", (1, 2, 3))


@pytest.mark.parametrize("search", [exercises.random_search, rivals.random_over_all, rivals.learned_search])
def test_searches_spend_their_budget_once_and_report_what_they_found(measured, search):
    bench = recorded.Recorded(measured, "fused_matmul", (2048, 2048, 2048))
    best, curve = search(grid(), *bench.shape, DATASHEET["H200"], bench.measure, 9, 3)
    assert len(bench.timed) == len(set(bench.timed)) == len(curve) == 9
    assert curve == sorted(curve, reverse=True) and bench.time(best) == curve[-1]
    best, curve = search(grid(), *bench.shape, DATASHEET["H200"], lambda config: math.inf, 3, 0)
    assert best is None and curve == [math.inf] * 3


def test_the_learned_model_measures_what_it_believes_fastest(measured):
    """With a tenth of the measurements, the learned search over all 144 does better than random search."""
    bench = recorded.Recorded(measured, "fused_matmul", (2048, 2048, 2048))
    race = rivals.race(
        {"learned": rivals.learned_search, "random": rivals.random_over_all}, bench, DATASHEET["H200"], 14, range(8)
    )
    assert np.median(race["learned"][:, -1]) < np.median(race["random"][:, -1])


def test_figures_draw_the_record(measured, compiled):
    shape, given = (4096, 4096, 4096), Prediction("?", 3.0)
    best = recorded.Recorded(measured, "fused_matmul", shape).best()[1]
    heat = pictures.draw_heat(measured, shape)
    assert max(float(t.get_text()) for ax in heat.axes for t in ax.texts) == round(tflops(*shape, best))
    table = pictures.elsewhere(measured)
    assert (np.diag(table) == 1).all() and (table.min() >= 1).all()
    race = {"one": np.array([[0.3, 0.1], [0.2, 0.0]])}
    drawn = [
        heat,
        pictures.draw_pipeline(measured, compiled, shape, (128, 128)),
        pictures.draw_rules(measured, exercises.resources),
        pictures.draw_tuned(measured),
        pictures.draw_elsewhere(measured, given),
        pictures.draw_regret(race, "Regret", given),
        pictures.draw_kept({"one": pictures.kept_losses(measured, exercises.prune, DATASHEET["H200"])}),
        pictures.draw_waves(recorded.wave_curve(), given),
        pictures.draw_long(recorded.long_runs()),
        pictures.draw_waves(recorded.wave_curve().iloc[:0]),
    ]
    assert all(len(figures.png(fig)) < 100_000 for fig in drawn)


def test_of_what_the_pruner_keeps_eleven_are_enough_at_the_shapes_it_was_fitted_to(measured):
    losses = pictures.kept_losses(measured, exercises.prune, DATASHEET["H200"])
    assert losses.shape == (len(sweep.SHAPES), 20) and (losses[:, 10] == 0).all() and losses[:, 9].max() > 0.02
    race = np.array([[0.3, 0.02, 0.0], [0.1, 0.01, 0.0], [0.5, 0.4, 0.3]])
    assert pictures.until(race) == 2 and pictures.until(race, goal=-1) is None


def test_the_rate_first_falls_where_a_second_wave_begins():
    curve = recorded.wave_curve()
    M, N = pictures.first_fall(curve), int(curve["N"].iloc[0])
    counts = [exercises.waves(m, N, sweep.WAVE_CONFIG, 132)[1] for m in (M - sweep.WAVE_CONFIG.BLOCK_M, M)]
    assert counts == [1, 2]


def test_triton_s_autotuner_asks_the_record_prunes_and_remembers(measured, monkeypatch):
    from labs_helpers.gemm.lab02.exercises.ex5_matmul_add_relu import matmul_add_relu_kernel as kernel

    chip, bench = DATASHEET["H200"], recorded.Recorded(measured, "fused_matmul", (2048, 2048, 2048))
    templates = [bench.ranking()[9], Config(16, 16, 16)]  # PyTorch's own list takes seconds to import
    monkeypatch.setattr(compilers, "inductor_templates", lambda: templates)
    table = compilers.picks(bench, kernel, exercises.prune, chip).set_index("search")
    assert table["measured"].iloc[:2].tolist() == [144, 20] and (table["lost"].iloc[:2] == 0).all()
    assert (table["lost"] >= 0).all() and table.loc["AutoTVM, until its model is fitted", "measured"] == 64
    assert table.iloc[2]["measured"] == 1 and table.iloc[2]["lost"] > 0
    hooks = {"early_config_prune": compilers.early(exercises.prune, chip)}
    tuner = compilers.RecordedTuner(kernel, bench, ["M", "N", "K"], hooks)
    for _ in range(2):
        tuner.run(*[np.zeros(1)] * 4, 2048, 2048, 2048)
    assert tuner.asked == exercises.prune(grid(), 2048, 2048, 2048, chip)
    assert compilers.from_triton(tuner.best_config) == bench.best()[0]
    without = compilers.picks(bench, Withheld("02/5", "matmul_add_relu_kernel"), exercises.prune, chip)
    assert without.set_index("search").equals(table)


def test_a_search_among_what_is_kept_measures_nothing_else(measured):
    bench, chip = recorded.Recorded(measured, "fused_matmul", (4096, 4096, 4096)), DATASHEET["H200"]
    rivals.among_kept(rivals.random_over_all, exercises.prune)(grid(), *bench.shape, chip, bench.measure, 9, 1)
    assert len(bench.timed) == 9 and set(bench.timed) <= set(exercises.prune(grid(), *bench.shape, chip))


def test_programs_per_sm():
    chip = DATASHEET["H200"]
    assert pictures.programs_per_sm(98304, 168, 4, chip) == 2  # shared memory: 2 · 97 KB of 228
    assert pictures.programs_per_sm(115 * 1024, 32, 4, chip) == 1
    assert pictures.programs_per_sm(8192, 255, 8, chip) == 1  # registers: 255 are rounded up to 256
    assert pictures.programs_per_sm(1024, 32, 8, chip) == 8  # threads
