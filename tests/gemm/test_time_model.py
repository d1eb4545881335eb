"""Test the time model: how it counts waves, that a fit recovers known times, and its losses on recorded sweeps."""

import dataclasses

import numpy
import pytest
import torch

from labs_helpers.gemm import plan, tuned_configs
from labs_helpers.gemm.kernels import hopper
from labs_helpers.gemm.kernels.hopper import HopperConfig
from labs_helpers.gemm.kernels.split_k import SplitConfig
from labs_helpers.gemm.time_model import COPY_MS, NEITHER, Measured, Tiling, TimeModel, fit, fit_copies, read
from labs_helpers.gemm.tuning import model_study
from labs_helpers.gemm.tuning.hopper_space import hopper_grid
from labs_helpers.measure import results
from labs_helpers.measure.machine import this_machine

SMS = 132


def test_a_part_of_a_wave_costs_a_whole_one():
    tiling = Tiling(128, 256, 64)
    rounds = [tiling.terms((128 * rows, 256 * 16, 640), SMS)[0] / 10 for rows in (8, 9, 16, 17, 33)]
    assert rounds == [1, 2, 2, 3, 4]  # of 128, 144, 256, 272 and 528 tiles
    own, terms = Tiling(128, 128, 64, an_sm=2).terms((1280, 12_800, 100), SMS)
    launch, waves, elements, moved, loads, ragged, *joined = terms
    assert (own, launch, waves, elements) == (8 * 2, 1, 4, 8 * 128 * 128)  # 1,000 tiles, 8 an SM, two at once
    assert loads == 1000 * 2 * 256 * 64 * 2  # tiles, steps, rows and columns, elements, bytes
    assert ragged == loads / 2 and joined == [0, 0, 0]  # rows of A are 200 bytes: every second starts within a sector
    assert moved == 2 * (1280 * 100 + 100 * 12_800 + 2 * 1280 * 12_800)


def made_up(noise=0.0):
    """Return times of ten shapes that a known model predicts, and the model."""
    draw = numpy.random.default_rng(0)
    grid = hopper_grid()
    steps = {
        c: (Tiling(c.BLOCK_M, c.BLOCK_N, c.BLOCK_K), 1e-9 * c.BLOCK_M * c.BLOCK_N * (1 + i)) for i, c in enumerate(grid)
    }
    true = TimeModel(SMS, (5e-3, 1e-3, 3e-8, 2e-10, 1e-10, 4e-11, 2e-3, 3e-7, 6e-8), steps)
    shapes = [tuple(8 * int(x) for x in draw.integers(64, 1024, 3)) for _ in range(10)]
    rows = [
        Measured(c, tiling, shape, true.predict(c, shape, splits) * (1 + noise * draw.standard_normal()), splits)
        for shape in shapes
        for c, (tiling, _) in steps.items()
        for splits in (1, 3)
    ]
    return rows, true


def test_a_fit_finds_what_made_the_times(tmp_path):
    rows, true = made_up()
    model = fit(rows, SMS)
    assert model.shared == pytest.approx(true.shared, rel=1e-6)
    for config, (_, step) in true.steps.items():
        assert model.steps[config][1] == pytest.approx(step, rel=1e-6)
    assert model.choose((4096, 4096, 4096))[0] == true.choose((4096, 4096, 4096))[0]
    model.write(tmp_path / "model.json", dtype="float16")
    assert read(tmp_path / "model.json", HopperConfig) == model
    with pytest.raises(ValueError, match="no measurements"):
        fit([], SMS)


def test_noise_costs_little_and_gives_no_negative_time():
    rows, _ = made_up(noise=0.03)
    model = fit(rows, SMS)
    assert min(model.shared) >= 0 and min(step for _, step in model.steps.values()) >= 0
    lost = [loss for _, loss, _ in model_study.losses(rows, SMS).values()]
    assert numpy.median(lost) < 0.08


def test_a_copy_is_taken_where_it_saves_more_than_it_takes():
    copy = fit_copies([(1000, 2e-3 + 1e-6), (4_000_000, 2e-3 + 4e-3), (10_000_000, 2e-3 + 1e-2)])
    assert copy == pytest.approx((2e-3, 1e-9), rel=1e-6)
    tiling = Tiling(128, 256, 64)
    slow = TimeModel(SMS, (0, 0, 0, 0, 0, 1e-10, 0, 0, 0), {"one": (tiling, 1e-6)}, copy=(2e-3, 2.5e-10))
    large, small = (8000, 8008, 8008), (1000, 1000, 1000)
    found = slow.choose(large)
    assert found.copied == (True, True)
    copying = COPY_MS + 2e-3 + 4 * 8008 * (8000 + 8008) * 2.5e-10
    assert found.ms == pytest.approx(copying + slow.predict("one", large, ragged=NEITHER))
    assert found.ms < slow.predict("one", large) and slow.choose(small).copied == NEITHER
    # Unreadable operands are always copied; without timed copies, no other operands are.
    assert slow.choose((1000, 1024, 1000), unreadable=(True, False)).copied == (True, False)
    assert dataclasses.replace(slow, copy=None).choose(large).copied == NEITHER


def test_on_recorded_shapes_left_out_the_choice_is_near_the_best():
    """Compare with the losses that the portable kernel's sweep gave, rounded up, to notice changes of the model."""
    lost = [loss for _, loss, _ in model_study.losses(model_study.portable("nvidia-h200"), SMS).values()]
    assert len(lost) >= 10 and numpy.median(lost) <= 0.02 and max(lost) <= 0.12


# Kernel → (median, 95th percentile) of the losses in its sweep, rounded up, to notice changes of the model.
LOST = {
    "nvidia-h200": {"hopper": (0.001, 0.08), "hopper_few_rows": (0.02, 0.15), "split_k": (0.001, 0.05)},
    "nvidia-h100-80gb-hbm3": {"hopper": (0.001, 0.08), "hopper_few_rows": (0.015, 0.12), "split_k": (0.015, 0.11)},
}


@pytest.mark.parametrize("machine", LOST)
def test_shapes_left_out_cost_what_was_recorded_and_the_shipped_models_are_those_of_the_records(machine):
    frame = results.load(results.path_for("gemm-hopper-tuning", machine))
    for kernel, (median, most) in LOST[machine].items():
        measured, sms = model_study.swept(frame, kernel)
        lost = [loss for _, loss, _ in model_study.losses(measured, sms).values()]
        assert len(lost) == (60 if kernel == "hopper" else 42)
        assert numpy.median(lost) <= median and numpy.quantile(lost, 0.95) <= most
        make = SplitConfig if kernel == "split_k" else HopperConfig
        shipped = read(tuned_configs.FOLDER / f"model-{kernel}-float16.{machine}.json", make)
        assert shipped.shared == pytest.approx(fit(measured, sms).shared)
        assert (shipped.copy is not None) is (kernel == "hopper")


def test_k_is_split_where_tiles_are_fewer_than_programs():
    config = SplitConfig(16, 128, 128)
    assert config.parts((16, 4096, 4096), SMS) == [1, 4, 5, 8, 9]  # 32 tiles for one or two on every SM
    assert config.parts((16, 128 * 200, 4096), SMS) == [1, 2]
    assert config.parts((1, 128, 300), SMS) == [1]  # three steps are fewer than the 132 parts
    own, terms = config.tiling.terms((10, 4096, 4096), SMS, splits=4)
    *_, loads, ragged, join, write, read_again = terms
    assert own == 8 and loads == 32 * 4 * 8 * (16 + 128) * 128 * 2 and ragged == 0
    assert (join, write, read_again) == (1, 10 * 128, 4 * 10 * 128)  # the rows that are there


@pytest.mark.skipif(not hopper.gluon_fits(), reason="this Triton's Gluon is another")
def test_few_rows_go_to_the_kernel_that_is_predicted_to_be_faster(monkeypatch):
    monkeypatch.setattr(plan, "this_machine", lambda: dataclasses.replace(this_machine(), architecture="sm_90"))
    monkeypatch.setattr(hopper, "_multiprocessors", lambda device: 132)
    for M, N, K in ((1, 4096, 4096), (16, 8192, 4096), (17, 8192, 4096), (2000, 3000, 4000)):
        a, b, c = (torch.zeros(1, dtype=torch.float16).expand(size).clone() for size in ((M, K), (K, N), (M, N)))
        chosen = plan._decide(a, b, c, M, N, K)
        split = plan._split_config(M, N, K, torch.float16, plan._hopper_choice(a, b)[0].ms)
        assert chosen.kernel == ("split_k" if M <= 16 and split else "hopper") and "predicted" in chosen.why
        assert (M <= 16) <= bool(split) and (M < 1000 or not split)
        config = hopper_grid()[0]
        assert chosen.with_config(config).kernel == "hopper" and chosen.with_config(config).product is None


@pytest.mark.skipif(not hopper.gluon_fits(), reason="this Triton's Gluon is another")
def test_the_plan_takes_the_models_choice_where_there_is_a_model(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "this_machine", lambda: dataclasses.replace(this_machine(), architecture="sm_90"))
    monkeypatch.setattr(hopper, "_multiprocessors", lambda device: 132)
    a, b, c = (torch.zeros(2000, 2000, dtype=torch.float16) for _ in range(3))
    (tmp_path / "nvidia-h200.json").write_text((tuned_configs.FOLDER / "nvidia-h200.json").read_text())
    model = made_up()[1]
    model.write(tmp_path / "model-hopper-float16.nvidia-h200.json")
    monkeypatch.setattr(tuned_configs, "FOLDER", tmp_path)
    tuned_configs.time_model.cache_clear()
    try:
        chosen = plan._decide(a, b, c, 2000, 2000, 2000)
        assert chosen.config == model.choose((2000, 2000, 2000))[0] and "ms predicted" in chosen.why
        a = b = torch.zeros(2048, 2048, dtype=torch.float16)
        assert "tuned for this shape" in plan._hopper_choice(a, b)[1]
    finally:
        tuned_configs.time_model.cache_clear()
