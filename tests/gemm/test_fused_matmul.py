"""Test that fused_matmul agrees with float64 for any shape, stride and dtype, and rejects unsupported operands."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.course.verdict import expect_close, matmul_bound, surrounded
from labs_helpers.gemm import fused_matmul
from labs_helpers.gemm.configs import Config, default_config
from labs_helpers.gemm.kernels.portable import last_offset
from labs_helpers.measure.machine import this_machine

DEVICE = this_machine().device
LAYOUTS = {
    "contiguous": lambda x: x.contiguous(),
    "transposed": lambda x: x.t().contiguous().t(),
    "slice between NaN": surrounded,
    "every other column": lambda x: torch.stack([x, torch.full_like(x, torch.nan)], dim=2).flatten(1)[:, ::2],
    "row expanded": lambda x: x[:1].expand(*x.shape),
    "column expanded": lambda x: x[:, :1].expand(*x.shape),
}


def operands(M, N, K, dtype, layouts, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((M, K), (K, N), (M, N))
    return [
        LAYOUTS[layout](torch.randn(*shape, generator=generator).to(dtype).to(DEVICE))
        for shape, layout in zip(shapes, layouts, strict=True)
    ]


def agrees(a, b, c, **keywords):
    exact = a.cpu().double() @ b.cpu().double() + c.cpu().double()
    magnitude = a.cpu().double().abs() @ b.cpu().double().abs() + c.cpu().double().abs()
    expected = exact.relu()
    bound = matmul_bound(expected, magnitude, a.shape[1], a.dtype)
    case = f"{tuple(a.shape)}·{tuple(b.shape)}"
    expect_close(case, fused_matmul(a, b, c, **keywords), expected, bound, "float32 accumulation")


size = st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 100, 129]))


@settings(max_examples=40)
@given(
    M=size,
    N=size,
    K=size,
    half=st.booleans(),
    seed=st.integers(0, 9),
    layouts=st.tuples(*[st.sampled_from(sorted(LAYOUTS))] * 3),
)
def test_any_shape_and_stride(M, N, K, half, seed, layouts):
    agrees(*operands(M, N, K, torch.float16 if half else torch.float32, layouts, seed))


@pytest.mark.parametrize(
    "config",
    [
        Config(16, 32, 16, GROUP_M=1),
        Config(32, 16, 64, GROUP_M=3),
        Config(128, 64, 32, GROUP_M=8, num_warps=8, num_stages=2),
    ],
    ids=str,
)
def test_any_configuration(config):
    agrees(*operands(100, 90, 70, torch.float16, ("contiguous",) * 3), config=config)


def test_nothing_beside_the_result_is_written_and_each_element_once():
    if not this_machine().interpreted:
        pytest.skip("counted in the interpreter")
    from labs_helpers.course.tally import tally

    counted = tally(fused_matmul, *operands(100, 130, 70, torch.float32, ("slice between NaN",) * 3))
    assert (counted.stores == 1).all() and (counted.loads[2] == 1).all()


def test_nan_and_infinity_pass_through_as_in_torch():
    a, b, c = operands(5, 6, 7, torch.float32, ("contiguous",) * 3)
    c[0, 0], c[1, 1], c[2, 2] = torch.inf, -torch.inf, 1e30
    assert torch.equal(fused_matmul(a, b, c).isinf(), torch.relu(a @ b + c).isinf())


a, b, c = torch.ones(4, 3), torch.ones(3, 5), torch.ones(4, 5)
BAD = {
    "a list": ((a.tolist(), b, c), TypeError, "a is a list"),
    "one dimension": ((a, b[0], c), ValueError, "b has 1 dimensions"),
    "empty": ((a[:0], b, c[:0]), ValueError, r"a is empty: \(0, 3\)"),
    "K differs": ((a, b[:2], c), ValueError, "b has 2 rows, but a has 3 columns"),
    "C too small": ((a, b, c[:1]), ValueError, r"c is \(1, 5\), but A·B is \(4, 5\)"),
    "integers": ((a.int(), b.int(), c.int()), TypeError, "a is torch.int32"),
    "float64": ((a.double(), b.double(), c.double()), TypeError, "a is torch.float64"),
    "mixed": ((a, b.half(), c), TypeError, "b is torch.float16, but a is torch.float32"),
    "mixed in C": ((a, b, c.half()), TypeError, "c is torch.float16"),
    "another device": ((a, b.to("meta"), c), ValueError, "b is on meta, but a is on cpu"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_operands_are_named(case):
    operands, error, message = BAD[case]
    with pytest.raises(error, match=message):
        fused_matmul(*operands)


def test_bfloat16_works_where_the_hardware_has_it_and_is_refused_elsewhere():
    x = [t.bfloat16().to(DEVICE) for t in (a, b, c)]
    if this_machine().supports_bfloat16:
        agrees(*x)
    else:
        with pytest.raises(TypeError, match="bfloat16"):
            fused_matmul(*x)


@pytest.mark.parametrize("architecture", [None, "sm_75", "sm_80", "sm_90", "sm_100", "gfx942"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("n", [1, 1024, 8192])
def test_every_default_is_one_the_kernel_can_be_built_with(architecture, dtype, n):
    config = default_config(n, n, n, dtype, architecture)
    blocks = (config.BLOCK_M, config.BLOCK_N, config.BLOCK_K)
    assert all(block >= 16 and block & (block - 1) == 0 for block in blocks)
    assert config.without_order().keys() == config.keywords().keys() - {"GROUP_M"}


def test_the_last_offset_is_that_of_the_last_element():
    x = torch.arange(60).view(5, 12)[1:4, ::3]
    assert last_offset(x.shape, x.stride()) == int(x[-1, -1] - x[0, 0])
    assert last_offset((3, 1000), (0, 1)) == 999
