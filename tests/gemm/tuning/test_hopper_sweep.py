"""Test the sweep behind the time models: its shapes, its candidates, and one shape if a GPU can run it."""

import pytest
import torch

from labs_helpers.gemm.kernels.hopper import HopperConfig, gluon_fits
from labs_helpers.gemm.random_shapes import random_shapes
from labs_helpers.gemm.tuning import hopper_sweep
from labs_helpers.gemm.tuning.hopper_space import hopper_grid
from labs_helpers.measure import results
from labs_helpers.measure.machine import this_machine

on_hopper = this_machine().architecture == "sm_90" and gluon_fits()


def test_its_shapes_are_of_every_kind_those_recorded_and_not_the_studys():
    shapes = hopper_sweep.shapes()
    frame = results.load(results.path_for("gemm-hopper-tuning", "nvidia-h200"))
    assert set(shapes) == set(zip(frame["M"], frame["N"], frame["K"], strict=True))
    assert len(shapes) == len(set(shapes)) == 102
    assert all(K > 128 and N % 8 == 0 and K % 8 == 0 for _, N, K in shapes)
    assert sum(M <= 128 for M, _, _ in shapes) == 42
    assert not set(shapes) & {shape[1:] for shape in random_shapes(200, 7)}


def test_k_is_split_where_tiles_are_few():
    for shape, few in (((1, 4096, 4096), True), ((1000, 1000, 8000), True), ((4096, 4096, 4096), False)):
        found = list(hopper_sweep.candidates(shape, 132))
        assert len(found) == len(set(found)) and {kernel for kernel, _ in found} <= {"hopper", "split_k"}
        assert [c for kernel, c in found if kernel == "hopper" and c.SPLITS == 1] == hopper_grid()
        assert (max(c.SPLITS for kernel, c in found if kernel == "hopper") > 2) is few
        assert any(kernel == "split_k" for kernel, _ in found) is (shape[0] == 1)
    assert HopperConfig(192, 192, 64, CONSUMERS=3).parts((512, 512, 9000), 132) == [1]


@pytest.mark.skipif(on_hopper, reason="it runs here")
def test_elsewhere_it_says_what_is_missing(capsys):
    with pytest.raises(SystemExit):
        hopper_sweep.main(["--seconds", "1"])
    assert "needs sm_90" in capsys.readouterr().err


@pytest.mark.skipif(not on_hopper, reason="needs an H100 or an H200")
def test_every_candidate_is_right_at_a_small_shape():
    records = hopper_sweep.measure_shape((40, 264, 520), torch.float16, lambda call: call() is not None and 1.0)
    assert not [record for record in records if "error" in record]
    assert {record["kind"] for record in records} >= {"hopper", "split_k", "fused_matmul"}
