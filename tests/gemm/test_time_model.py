"""The model of a GEMM's time: it counts waves, finds again what made its data, and is held to the recorded sweeps."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch

from labs_helpers.gemm import plan, tuned_configs
from labs_helpers.gemm.kernels import hopper
from labs_helpers.gemm.kernels.hopper import HopperConfig
from labs_helpers.gemm.kernels.split_k import SplitConfig, tiling_of, worth_splitting
from labs_helpers.gemm.time_model import Measured, Tiling, TimeModel, fit, read
from labs_helpers.gemm.tuning import model_study
from labs_helpers.gemm.tuning.hopper_space import SHARED_LIMIT, hopper_grid
from labs_helpers.measure import results
from labs_helpers.measure.machine import this_machine

SMS = 132


def test_a_part_of_a_wave_costs_a_whole_one():
    tiling = Tiling(128, 256, 64)
    rounds = [tiling.terms((128 * rows, 256 * 16, 640), SMS)[0] / 10 for rows in (8, 9, 16, 17, 33)]
    assert rounds == [1, 2, 2, 3, 4]  # of 128, 144, 256, 272 and 528 tiles
    own, (launch, waves, elements, moved, parts, loads) = Tiling(128, 128, 64, an_sm=2).terms((1280, 12_800, 100), SMS)
    assert (own, launch, waves, elements) == (8 * 2, 1, 4, 8 * 128 * 128)  # 1,000 tiles, 8 an SM, two at once
    assert parts == 0 and loads == 1000 * 2 * 256 * 64 * 2  # tiles, steps, rows and columns, elements, bytes
    assert moved == 2 * (1280 * 100 + 100 * 12_800 + 2 * 1280 * 12_800)


def made_up(noise=0.0):
    """Times that a model makes, of ten shapes; and the model."""
    draw = numpy.random.default_rng(0)
    grid = hopper_grid()
    steps = {
        c: (Tiling(c.BLOCK_M, c.BLOCK_N, c.BLOCK_K), 1e-9 * c.BLOCK_M * c.BLOCK_N * (1 + i)) for i, c in enumerate(grid)
    }
    true = TimeModel(SMS, (5e-3, 1e-3, 3e-8, 2e-10, 0.0, 1e-10), steps)
    shapes = [tuple(8 * int(x) for x in draw.integers(64, 1024, 3)) for _ in range(10)]
    rows = [
        Measured(c, tiling, shape, true.predict(c, shape) * (1 + noise * draw.standard_normal()))
        for shape in shapes
        for c, (tiling, _) in steps.items()
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
    with pytest.raises(ValueError, match="nothing was measured"):
        fit([], SMS)


def test_noise_costs_little_and_gives_no_negative_time():
    rows, _ = made_up(noise=0.03)
    model = fit(rows, SMS)
    assert min(model.shared) >= 0 and min(step for _, step in model.steps.values()) >= 0
    lost = [loss for _, loss, _ in model_study.losses(rows, SMS).values()]
    assert numpy.median(lost) < 0.08


def test_on_recorded_shapes_left_out_the_choice_is_near_the_best():
    """The portable kernel's sweep; the numbers that it gave, rounded up, so that a change of the model shows."""
    lost = [loss for _, loss, _ in model_study.losses(model_study.portable("nvidia-h200"), SMS).values()]
    assert len(lost) >= 10 and numpy.median(lost) <= 0.02 and max(lost) <= 0.12


def test_on_an_h200_shapes_left_out_cost_what_was_recorded():
    path = results.path_for("gemm-hopper-tuning", "nvidia-h200")
    (hopper_rows, sms), (split_rows, _) = (model_study.swept(path, kernel) for kernel in ("hopper", "split_k"))
    for measured, median, most in ((hopper_rows, 0.001, 0.15), (split_rows, 0.001, 0.07)):
        lost = [loss for _, loss, _ in model_study.losses(measured, sms).values()]
        assert len(lost) >= 60 and numpy.median(lost) <= median and numpy.quantile(lost, 0.95) <= most
    # The shipped models are those of these records.
    for kernel, measured in (("hopper", hopper_rows), ("split_k", split_rows)):
        make = HopperConfig if kernel == "hopper" else SplitConfig
        shipped = read(tuned_configs.FOLDER / f"model-{kernel}-float16.nvidia-h200.json", make)
        assert shipped.shared == pytest.approx(fit(measured, sms).shared)


def test_k_is_split_where_tiles_are_fewer_than_programs():
    tiling = tiling_of(SplitConfig(16, 128, 128))
    assert worth_splitting(tiling, (16, 4096, 4096), SMS) == [1, 4, 5, 8, 9]  # 32 tiles for one or two on every SM
    assert worth_splitting(tiling, (16, 128 * 200, 4096), SMS) == [1, 2]
    assert worth_splitting(tiling, (1, 128, 300), SMS) == [1]  # three steps are fewer than the 132 parts
    own, (*_, parts, loads) = tiling.terms((16, 4096, 4096), SMS, splits=4)
    assert own == 8 and parts == 4 * 16 * 128 and loads == 32 * 4 * 8 * (16 + 128) * 128 * 2


@pytest.mark.skipif(not hopper.gluon_fits(), reason="this Triton's Gluon is another")
def test_few_rows_go_to_the_kernel_that_is_predicted_to_be_faster(monkeypatch):
    monkeypatch.setattr(plan, "this_machine", lambda: dataclasses.replace(this_machine(), architecture="sm_90"))
    monkeypatch.setattr(hopper, "_multiprocessors", lambda device: 132)
    for M, N, K in ((1, 4096, 4096), (16, 8192, 4096), (100, 2176, 5792), (2000, 3000, 4000)):
        a, b, c = (torch.zeros(1, dtype=torch.float16).expand(size).clone() for size in ((M, K), (K, N), (M, N)))
        chosen = plan._decide(a, b, c, M, N, K)
        split = plan._split_config(M, N, K, torch.float16, plan._hopper_config(M, N, K, torch.float16)[2])
        assert chosen.kernel == ("split_k" if split else "hopper") and "predicted" in chosen.why
        assert (M < 100) <= bool(split) and (M < 1000 or not split)
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
        assert "tuned for this shape" in plan._hopper_config(2048, 2048, 2048, torch.float16)[1]
    finally:
        tuned_configs.time_model.cache_clear()


BUILD = """
import importlib.util, json, subprocess, sys, tempfile, triton
from pathlib import Path
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
spec = importlib.util.spec_from_file_location("hopper_kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
for c in json.loads(sys.argv[2]):
    rows = c["BLOCK_M"] // c["CONSUMERS"]
    blocks = {"a_desc": [rows, c["BLOCK_K"]], "b_desc": [c["BLOCK_K"], c["BLOCK_N"]],
              "c_desc": [rows, c["BLOCK_N"]], "d_desc": [rows, c["BLOCK_N"]]}
    signature = {n: f"tensordesc<fp16{s},{gl.NVMMASharedLayout.get_default_for(s, gl.float16)!r}>"
                 for n, s in blocks.items()}
    signature |= dict.fromkeys(("M", "N", "K", "group_m", "c_after"), "i32")
    constants = {n: c[n] for n in ("BLOCK_N", "STAGES", "CONSUMERS")}
    signature |= dict.fromkeys(constants, "constexpr")
    built = triton.compile(GluonASTSource(module.hopper_matmul_kernel, signature, constants),
                           target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        used = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    print(built.metadata.shared, int(used.split("STACK:")[1].split()[0]))
"""


@pytest.mark.skipif(not hopper.gluon_fits(), reason="this Triton's Gluon is another")
def test_every_configuration_of_the_grid_builds_without_spills():
    grid = hopper_grid()
    assert len(grid) == len(set(grid)) >= 14
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    kernel = str(Path(hopper.__file__).with_name("hopper_kernel.py"))
    command = [sys.executable, "-c", BUILD, kernel, json.dumps([c.keywords() for c in grid])]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=140, env=environment)
    assert answer.returncode == 0, answer.stderr[-2000:]
    resources = [tuple(map(int, line.split())) for line in answer.stdout.splitlines()]
    assert len(resources) == len(grid)
    assert all(shared <= SHARED_LIMIT and stack == 0 for shared, stack in resources), resources
