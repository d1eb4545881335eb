"""Products of 8-bit codes by the Hopper kernel: which it takes, that it compiles, and on a Hopper GPU its results."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.course.verdict.surroundings import Guarded
from labs_helpers.gemm.kernels.hopper import HopperConfig
from labs_helpers.gemm.scaled import for_codes, promising, scaled_config, scaled_matmul, takes_codes, why_not
from labs_helpers.gemm.tuning.hopper_space import SHARED_LIMIT, hopper_grid
from tests.gemm.hopper_builds import build
from tests.gemm.test_hopper import on_hopper, with_its_gluon

CODES = {"i8": torch.int8, "fp8e4nv": torch.float8_e4m3fn}  # Triton's name → dtype
A, B, HALF = torch.ones(70, 256, dtype=torch.int8), torch.ones(64, 256, dtype=torch.int8), torch.float16
REFUSED = {
    "another chip": ((A, B, HALF), "sm_100", "needs sm_90, this is sm_100"),
    "the interpreter": ((A, B, HALF), None, "this is the interpreter"),
    "two kinds of codes": ((A, B.to(torch.float8_e4m3fn), HALF), "sm_90", "not torch.int8 by torch.float8_e4m3fn"),
    "a result in float32": ((A, B, torch.float32), "sm_90", "to 16-bit floats"),
    "short K": ((A[:, :128].clone(), B[:, :128].clone(), HALF), "sm_90", "K is at most 128"),
    "rows not aligned": ((A[:, :248].clone(), B[:, :248].clone(), HALF), "sm_90", "a's rows do not start at multiples"),
    "D not aligned": ((A, B[:60], HALF), "sm_90", "N is no multiple of 8"),
}
# The least and the most registers, an int8 tile of 256 columns, and parts of sums.
BUILT = [HopperConfig(128, 256, 128), HopperConfig(64, 128, 128, STAGES=8, CONSUMERS=1, SPLITS=2)]


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_take_is_said(case):
    operands, architecture, reason = REFUSED[case]
    assert reason in why_not(*operands, architecture)


@with_its_gluon
def test_what_it_can_take():
    assert why_not(A, B, HALF, "sm_90") is None and why_not(A[:3], B, torch.bfloat16, "sm_90") is None


@given(
    M=st.integers(1, 9000), N=st.integers(1, 2000).map(lambda n: 8 * n), K=st.integers(9, 2000).map(lambda k: 16 * k)
)
def test_the_chosen_configuration_fits(M, N, K):
    config = scaled_config(M, N, K)
    ring = config.STAGES * (config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K
    assert ring + 2 * config.BLOCK_M * config.BLOCK_N + 1024 <= SHARED_LIMIT
    assert config.BLOCK_K == 128 and 1 <= config.SPLITS <= -(-K // 128)
    assert promising(M, N, K, 3)[0] == config and len(set(promising(M, N, K, 3))) == 3


@with_its_gluon
@pytest.mark.parametrize("codes", CODES)
def test_the_tiles_build_without_spills(codes):
    expect_no_spills(BUILT, codes)


@pytest.mark.soak
@pytest.mark.timeout(500)
@with_its_gluon
@pytest.mark.parametrize("codes", CODES)
def test_every_configuration_builds_without_spills(codes):
    configs = [for_codes(config) for config in hopper_grid() if takes_codes(config)]
    expect_no_spills([dataclasses.replace(c, SPLITS=n) for c in configs for n in (1, 2)], codes)


def expect_no_spills(configs, codes):
    for built, config in zip(build(configs, codes), configs, strict=True):
        assert built.wgmma > 0 and built.tma >= 3 and built.stack == 0, config
        assert built.shared <= SHARED_LIMIT, config


def operands(M, N, K, dtype, seed):
    """Return codes of every value that the dtype has, and scales that differ by row."""
    torch.manual_seed(seed)
    a, b = (torch.randn(rows, K, device="cuda") * 40 for rows in (M, N))
    return *((x.clamp(-127, 127)).to(dtype) for x in (a, b)), *(torch.rand(n, device="cuda") + 0.1 for n in (M, N))


@on_hopper
@settings(max_examples=60, deadline=None)
@given(
    M=st.integers(1, 700),
    N=st.integers(1, 90).map(lambda n: 8 * n),
    K=st.integers(9, 130).map(lambda k: 16 * k),
    codes=st.sampled_from(list(CODES)),
    result=st.sampled_from([torch.float16, torch.bfloat16]),
    which=st.integers(0, 99),
    splits=st.sampled_from([1, 1, 2, 3, 7]),
)
def test_it_is_right_for_any_size_that_it_takes(M, N, K, codes, result, which, splits):
    configs = [for_codes(config) for config in hopper_grid() if takes_codes(config)]
    config = dataclasses.replace(configs[which % len(configs)], SPLITS=splits)
    a, b, a_scale, b_scale = operands(M, N, K, CODES[codes], M * N + K)
    a_scale, b_scale = a_scale / K, b_scale / 99  # sums that fit into float16
    with Guarded() as guard:
        d = scaled_matmul(a, b, a_scale, b_scale, result, config)
        torch.cuda.synchronize()
    wide_a, wide_b = a.double() * a_scale.double()[:, None], b.double() * b_scale.double()[:, None]
    exact, size = wide_a @ wide_b.T, wide_a.abs() @ wide_b.abs().T
    # int8: the sum's conversion and two scales. float8: tensor cores keep 13 bits of the largest summand's fraction.
    sums = 2**-21 if codes == "i8" else 2**-12
    unit = 2**-11 if result == torch.float16 else 2**-8
    assert ((d.double() - exact).abs() <= sums * size + 1.01 * unit * (exact.abs() + sums * size) + 2**-24).all()
    assert guard.overwritten() == 0


@on_hopper
@pytest.mark.parametrize("codes", CODES)
def test_many_tiles_a_program_and_repeated_launches_agree(codes):
    """Persistent programs reuse their buffers, so a race would make the runs differ."""
    for M, N, K in ((3000, 2960, 2960), (100, 520, 8000)):
        given = operands(M, N, K, CODES[codes], 0)
        first = scaled_matmul(*given, torch.bfloat16)
        assert all(torch.equal(scaled_matmul(*given, torch.bfloat16), first) for _ in range(20))
