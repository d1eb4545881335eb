"""Test that operands which TMA cannot read are copied correctly for any stride, and only where a copy pays."""

import dataclasses
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.compile.ahead_of_time import compile_launch
from labs_helpers.compile.launches import record_launches
from labs_helpers.course.verdict import expect_close, matmul_bound, surrounded
from labs_helpers.gemm import Config, fused_matmul, plan
from labs_helpers.gemm.kernels import hopper
from labs_helpers.gemm.kernels.hopper import why_not_row
from labs_helpers.gemm.kernels.padded import ROWS, PaddedProduct, copy_rows, narrow, padded
from labs_helpers.measure.machine import this_machine

DEVICE = this_machine().device
LAYOUTS = {
    "contiguous": lambda x: x.contiguous(),
    "transposed": lambda x: x.t().contiguous().t(),
    "slice between NaN": surrounded,
    "row expanded": lambda x: x[:1].expand(*x.shape),
    "starts at the second element": lambda x: torch.cat([x, x], dim=1)[:, 1 : 1 + x.shape[1]],
}


def like_hopper(a, b, c, config, d_strides):
    """Launch the portable kernel, with the requirements of the Hopper kernel on its operands."""

    def launch(a, b, c, d):
        assert d.stride() == d_strides
        for x in (a, b, c, d):
            assert x.stride(1) == 1 and x.stride(0) * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0
        return d.copy_(fused_matmul(a, b, c, config=config))

    return launch


@settings(max_examples=50)
@given(
    M=st.integers(1, 70),
    N=st.integers(1, 70),
    K=st.integers(1, 70),
    half=st.booleans(),
    seed=st.integers(0, 9),
    layouts=st.tuples(*[st.sampled_from(sorted(LAYOUTS))] * 3),
    also=st.tuples(st.booleans(), st.booleans()),
)
def test_any_shape_and_stride(M, N, K, half, seed, layouts, also):
    dtype = torch.float16 if half else torch.float32
    generator = torch.Generator().manual_seed(seed)
    shapes = ((M, K), (K, N), (M, N))
    a, b, c = (
        LAYOUTS[layout](torch.randn(*shape, generator=generator).to(dtype).to(DEVICE))
        for shape, layout in zip(shapes, layouts, strict=True)
    )
    exact = (a.cpu().double() @ b.cpu().double() + c.cpu().double()).relu()
    magnitude = a.cpu().double().abs() @ b.cpu().double().abs() + c.cpu().double().abs()
    product = PaddedProduct(a, b, c, Config(32, 32, 32), also, like_hopper)
    assert {i for i in (0, 1) if also[i]} <= set(product.copied)
    for _ in range(2):  # the second pass uses the launches that the first prepared
        d = product(a, b, c)
        assert d.is_contiguous() and d.shape == (M, N)
        expect_close(f"{M}×{N}×{K}", d, exact, matmul_bound(exact, magnitude, K, dtype), "float32")


@settings(max_examples=30)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 300)), min_size=1, max_size=3),
    layouts=st.tuples(*[st.sampled_from(sorted(LAYOUTS))] * 3),
)
def test_copies_are_equal_and_nothing_else_is_written(sizes, layouts):
    pairs = []
    for size, layout in zip(sizes, layouts, strict=False):
        x = LAYOUTS[layout](torch.randn(size).half().to(DEVICE))
        like = padded(*size, x.dtype, x.device)
        assert why_not_row(like) is None and like.stride(0) % 64 == 0 <= like.stride(0) - size[1] < 64
        pairs.append((x, torch.full((size[0], like.stride(0)), 7.0, dtype=x.dtype, device=DEVICE)[:, : size[1]]))
    copy_rows(*pairs)
    for x, y in pairs:
        assert (
            torch.equal(x, y) and (y._base[:, y.shape[1] :] == 7 if y._base is not None else torch.tensor(True)).all()
        )


def test_what_tma_can_read_is_not_copied():
    a, b = torch.randn(64, 130).half().to(DEVICE)[:, :128], torch.randn(128, 64).half().to(DEVICE)
    c = torch.randn(64, 64).half().to(DEVICE)
    with record_launches() as launches:
        d = PaddedProduct(a.contiguous(), b, c, Config(32, 32, 32), launch=like_hopper)(a.contiguous(), b, c)
        assert [launch.name for launch in launches] == ["fused_matmul_kernel"] and d.is_contiguous()
        PaddedProduct(a, b, c, Config(32, 32, 32), launch=like_hopper)(a, b, c)
    assert launches[1].name == "copy_rows_kernel" and launches[1].grid == (64 // ROWS,)


def half(*shape):
    return torch.zeros(shape, dtype=torch.float16, device=DEVICE)


def test_narrow_loads_are_those_of_less_than_16_bytes():
    assert narrow(half(64, 63)) and narrow(half(64, 65)[:, 1:]) and narrow(half(64, 128)[:, ::2])
    assert not narrow(half(64, 64)) and not narrow(half(64, 64).t()) and not narrow(half(1, 64).expand(64, 64))


@pytest.mark.skipif(not hopper.gluon_fits(), reason="this Triton's Gluon is another")
def test_the_plan_copies_on_hopper_and_says_why(monkeypatch):
    monkeypatch.setattr(plan, "this_machine", lambda: dataclasses.replace(this_machine(), architecture="sm_90"))
    monkeypatch.setattr(hopper, "_multiprocessors", lambda device: 132)
    operands = half(2000, 4095), half(4095, 2048), half(2000, 2048)
    chosen = plan._decide(*operands, 2000, 2048, 4095)
    assert chosen.kernel == "hopper" and chosen.copied and "of copies, for a's rows do not start" in chosen.why
    assert not plan._decide(half(2000, 4096), half(4096, 2048), half(2000, 2048), 2000, 2048, 4096).copied
    # Few rows do not pay for a copy of all of B; columns that start at multiples of 16 bytes need none.
    few = plan._decide(half(8, 4095), half(4095, 2048), half(8, 2048), 8, 2048, 4095)
    assert few.kernel == "split_k" and few.config.SPLITS > 1 and "for 8 rows" in few.why
    transposed = half(4096, 4096), half(4096, 4096).t(), half(4096, 4096)
    assert plan._decide(*transposed, 4096, 4096, 4096).kernel == "portable"
    assert isinstance(chosen.product, PaddedProduct) and 0 in chosen.product.copied
    # Rows that start at multiples of 16 bytes can be read, but slowly where not of 32: a large product pays for copies.
    x = torch.empty_strided((8008, 8008), (8008, 1), dtype=torch.float16, device=DEVICE)
    large = plan._decide(x, x, x, 8008, 8008, 8008)
    assert large.copied and large.also == (True, True) and "copies of A and B included" in large.why


@pytest.mark.parametrize("layout", ["rows", "transposed"])
def test_a_copy_of_odd_rows_takes_neighbours_by_neighbouring_threads(layout):
    x = half(1001, 999) if layout == "rows" else half(999, 1001).t()
    with record_launches(run=False) as launches:
        copy_rows(*[(x, padded(1001, 999, x.dtype, x.device))] * 3)
    compiled = compile_launch(launches[0], "sm_90")
    assert not compiled.spills and compiled.registers <= 64
    # A thread that stored eight elements together would also load them one by one, far from those of the next thread.
    assert compiled.assembly.count("ld.global.b16") == compiled.assembly.count("st.global.b16") == 3 * 16


@pytest.mark.parametrize("first", ["eights", "odd"])
def test_each_matrix_of_a_copy_is_read_as_widely_as_its_rows_allow(first):
    x, y = half(1000, 1000 if first == "eights" else 999), half(512, 1008)
    with record_launches(run=False) as launches:
        copy_rows(*[(z, padded(*z.shape, z.dtype, z.device)) for z in (x, y)])
    loads = re.findall(r"ld\.global\.v4\.b32", compile_launch(launches[0], "sm_90").assembly)
    assert len(loads) == (4 if first == "eights" else 2)  # two for each thread and matrix
