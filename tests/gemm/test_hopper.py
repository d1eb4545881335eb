"""Test which operands the Hopper kernel accepts, that it compiles, and on a Hopper GPU that its results are correct."""

import dataclasses
import sys
from types import SimpleNamespace

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.course.verdict import expect_close, matmul_bound
from labs_helpers.course.verdict.surroundings import Guarded
from labs_helpers.gemm import Config, fused_matmul
from labs_helpers.gemm.kernels import hopper
from labs_helpers.gemm.kernels.hopper import HopperConfig, why_not
from labs_helpers.gemm.plan import plan
from labs_helpers.gemm.tuned_configs import tuned
from labs_helpers.gemm.tuning.hopper_space import SHARED_LIMIT, hopper_grid
from labs_helpers.measure.machine import this_machine
from tests.gemm.hopper_builds import build

on_hopper = pytest.mark.skipif(this_machine().architecture != "sm_90", reason="needs a Hopper GPU")
with_its_gluon = pytest.mark.skipif(not hopper.gluon_fits(), reason="this Triton's Gluon is another")


def half(*shape):
    return torch.ones(shape, dtype=torch.float16)


A, B, C = half(256, 512), half(512, 128), half(256, 128)
REFUSED = {
    "another chip": ((A, B, C), "sm_80", "needs sm_90, this is sm_80"),
    "the interpreter": ((A, B, C), None, "this is the interpreter"),
    "float32": ((A.float(), B.float(), C.float()), "sm_90", "16-bit floats, not torch.float32"),
    "A transposed": ((half(512, 256).t(), B, C), "sm_90", "a is not row-major"),
    "C expanded": ((A, B, half(1, 128).expand(256, 128)), "sm_90", "c is not row-major"),
    "rows not aligned": ((half(256, 516)[:, :512], B, C), "sm_90", "a's rows do not start at multiples of 16 bytes"),
    "start not aligned": ((half(256, 520)[:, 1:513], B, C), "sm_90", "a's rows do not start"),
    "D not aligned": ((A, half(512, 136)[:, :124], half(256, 136)[:, :124]), "sm_90", "N is no multiple of 8"),
    "short K": ((half(256, 128), half(128, 128), C), "sm_90", "K is at most 128"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_take_is_said(case):
    operands, architecture, reason = REFUSED[case]
    assert reason in why_not(*operands, architecture)


def test_a_triton_with_another_gluon_is_refused(monkeypatch):
    monkeypatch.setattr(hopper, "gluon_fits", lambda: False)
    assert "that of Triton 3.6 and 3.7" in why_not(A, B, C, "sm_90")


@with_its_gluon
def test_what_it_can_take():
    assert why_not(A, B, C, "sm_90") is None
    assert why_not(half(300, 520)[:, :512], B, half(300, 128), "sm_90") is None  # a slice with aligned rows
    assert why_not(A.bfloat16(), B.bfloat16(), C.bfloat16(), "sm_90") is None


def test_the_plan_says_which_kernel_runs_and_why():
    device = this_machine().device
    chosen = plan(
        torch.ones(64, 512, device=device), torch.ones(512, 64, device=device), torch.ones(64, 64, device=device)
    )
    assert chosen.kernel == "portable" and isinstance(chosen.config, Config) and "portable kernel" in str(chosen)
    with pytest.raises(ValueError, match="config is for the Hopper kernel, but"):
        fused_matmul(*(torch.ones(64, 64, device=device) for _ in range(3)), config=HopperConfig(128, 128, 64))
    with pytest.raises(ValueError, match="b has 3 rows"):
        plan(torch.ones(4, 5), torch.ones(3, 5), torch.ones(4, 5))


def test_plans_are_remembered_and_bounded(monkeypatch):
    device = this_machine().device
    module = sys.modules[plan.__module__]
    monkeypatch.setattr(module, "MOST_KNOWN", 3)
    monkeypatch.setattr(module, "_known", {})
    first = [torch.ones(size, device=device) for size in ((2, 5), (5, 4), (2, 4))]
    assert plan(*first) is plan(*first)
    for rows in range(3, 8):
        plan(torch.ones(rows, 5, device=device), first[1], torch.ones(rows, 4, device=device))
        assert len(module._known) <= 3


def test_shipped_configurations_fit_a_program_s_shared_memory():
    for entry in tuned("hopper", torch.float16):
        config = HopperConfig(**entry["config"])
        assert config.shared_bytes + 1024 < SHARED_LIMIT and config.BLOCK_M // config.CONSUMERS >= 64
        assert entry["measured"] is True and config.C_AFTER >= 1
    assert tuned("hopper", torch.bfloat16) and tuned("hopper", torch.float16)
    with pytest.raises(KeyError, match="nvidia-h200"):
        tuned("hopper", torch.float16, "abacus")


def test_a_configuration_that_the_kernel_does_not_have_is_refused():
    with pytest.raises(ValueError, match="BLOCK_N is 96.*192"):
        HopperConfig(128, 96, 64)
    with pytest.raises(ValueError, match="SPLITS is 0"):
        HopperConfig(128, 128, 64, SPLITS=0)


@with_its_gluon
@pytest.mark.parametrize("widths", [(64,), (128,), (128, 64), (256,)])
def test_a_part_of_a_sum_has_a_place_for_each_element_and_a_warp_writes_what_lies_together(widths, monkeypatch):
    """Call `place_of` itself with NumPy's arange in place of Gluon's, because Gluon has no interpreter."""
    from labs_helpers.gemm.kernels import hopper_kernel

    with_numpy = SimpleNamespace(arange=lambda begin, end, _: numpy.arange(begin, end), SliceLayout=lambda *_: None)
    monkeypatch.setattr(hopper_kernel, "gl", with_numpy)
    places, at = [], 0
    for width in widths:
        acc = SimpleNamespace(type=SimpleNamespace(layout=0, shape=[64, width]))
        place, there = hopper_kernel.place_of.fn(acc, 40, at, sum(widths))
        assert there.ravel().tolist() == [True] * 40 + [False] * 24
        # In wgmma's accumulator, a warp stores 8 rows by 8 columns at a time, two neighbors per thread.
        assert sorted(place[8:16, 16:24].ravel() - place[8, 16]) == list(range(64))
        assert (place[:, 1::2] == place[:, ::2] + 1).all()
        places.append(place)
        at += width
    assert sorted(numpy.concatenate(places, axis=1).ravel()) == list(range(64 * sum(widths)))


@with_its_gluon
def test_what_is_shipped_and_every_kind_of_tile_builds_without_spills():
    """Compile the kernel ahead of time, in a process without the interpreter."""
    shipped = {HopperConfig(**entry["config"]) for entry in tuned("hopper", torch.float16)}
    grid = {(c.BLOCK_M, c.BLOCK_N, c.BLOCK_K, c.CONSUMERS): c for c in hopper_grid()}
    whole = [grid[128, 192, 64, 2], grid[192, 192, 64, 3], grid[64, 64, 128, 1]]
    split = [dataclasses.replace(grid[tile], SPLITS=3) for tile in ((64, 192, 64, 1), (192, 128, 64, 3))]
    expect_no_spills([*shipped, *whole, *split])


@pytest.mark.soak
@pytest.mark.timeout(500)
@with_its_gluon
def test_every_configuration_of_the_grid_builds_without_spills():
    grid = hopper_grid()
    assert len(grid) == len(set(grid)) >= 20
    expect_no_spills(
        [dataclasses.replace(c, SPLITS=n) for c in grid for n in (1, 2) if n == 1 or c.parts((512, 512, 8192), 132)[1:]]
    )


def expect_no_spills(configs):
    for built, config in zip(build(configs), configs, strict=True):
        assert built.wgmma > 0 and built.tma >= 3 and built.stack == 0, config
        assert config.shared_bytes <= built.shared <= SHARED_LIMIT, config


@on_hopper
@settings(max_examples=60)
@given(
    M=st.integers(1, 700),
    N=st.integers(1, 90).map(lambda n: 8 * n),
    K=st.integers(17, 130).map(lambda n: 8 * n),
    bf16=st.booleans(),
    pad=st.sampled_from([0, 8, 64]),
    which=st.integers(0, 99),
    splits=st.sampled_from([1, 1, 2, 3, 7]),
)
def test_it_is_right_for_any_size_that_it_takes(M, N, K, bf16, pad, which, splits):
    dtype = torch.bfloat16 if bf16 else torch.float16
    generator = torch.Generator().manual_seed(M * N + K)
    configs = [*hopper_grid(), HopperConfig(128, 128, 64, 2, 4, 2, 1), HopperConfig(64, 256, 64, 3, 4, 1, 100)]
    config = dataclasses.replace(configs[which % len(configs)], SPLITS=splits)
    a, b, c = (
        torch.full((m, n + pad), torch.nan, dtype=dtype, device="cuda")[:, :n] for m, n in ((M, K), (K, N), (M, N))
    )
    for tensor in (a, b, c):
        tensor.copy_(torch.randn(tensor.shape, generator=generator))
    with Guarded() as guard:
        d = fused_matmul(a, b, c, config=config)
        torch.cuda.synchronize()
    exact = a.cpu().double() @ b.cpu().double() + c.cpu().double()
    magnitude = a.cpu().double().abs() @ b.cpu().double().abs() + c.cpu().double().abs()
    bound = matmul_bound(exact.relu(), magnitude, K, dtype)
    expect_close(f"{M}×{N}×{K}", d, exact.relu(), bound, "float32 accumulation")
    assert guard.overwritten() == 0


@on_hopper
def test_many_tiles_a_program_and_repeated_launches_agree():
    """Persistent programs reuse their buffers, so a race would make the runs differ."""
    a, b, c = (torch.randn(3000, 3000, device="cuda").half()[:, :2960] for _ in range(3))
    a, b, c = a[:, :2960], b[:2960, :2960], c[:, :2960]
    first = fused_matmul(a, b, c)
    assert plan(a, b, c).kernel == "hopper"
    for _ in range(20):
        assert torch.equal(fused_matmul(a, b, c), first)


@on_hopper
def test_parts_are_added_up_in_their_order_whoever_is_last():
    a, b, c = (
        torch.randn(300, 8000).half().cuda(),
        torch.randn(8000, 520).half().cuda(),
        torch.zeros(300, 520).half().cuda(),
    )
    config = HopperConfig(64, 128, 64, STAGES=4, CONSUMERS=1, SPLITS=7)
    first = fused_matmul(a, b, c, config=config)
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    found = []
    for _ in range(20):
        for stream in streams:
            with torch.cuda.stream(stream):
                found.append(fused_matmul(a, b, c, config=config))
    torch.cuda.synchronize()
    assert all(torch.equal(d, first) for d in found)
