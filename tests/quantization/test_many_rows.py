"""Products with many rows against float64, in every format, with x as it is and in 8 bits."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.gemm import Config
from labs_helpers.quantization.kernels import chips
from labs_helpers.quantization.kernels.many_rows import dequantized, fused_rows, many_rows_config, rounded_rows
from labs_helpers.quantization.kernels.round_rows import _launch_for, round_rows
from labs_helpers.quantization.operator import quantized_product
from labs_helpers.quantization.plan import MOST_FUSED, many_rows, plan, rounded_product
from labs_helpers.quantization.weights import FP8, FP8_MAX, INT8_MAX, Int8Weight
from tests.quantization.test_few_rows import DEVICE, DTYPES, KINDS, UNIT, make

FORMATS = KINDS[1:]
CODES = {"int8": torch.int8, "fp8": FP8}
# Relative to Σ|x||w|, of one product's addition: Hopper's tensor cores keep about 14 bits of sums of float8.
STEP = {"int8": 0.0, "fp8": 2**-13 if DEVICE == "cuda" else 2**-24}


def expect_within(found, exact, bound, dtype):
    bound = bound + 1.01 * UNIT[dtype] * (exact.abs() + bound) + 2**-24  # … of denormal float16
    assert found.dtype == dtype and found.shape == exact.shape
    away = (found.double() - exact).abs()
    assert (away <= bound).all(), (away / bound).max()


def operands(data, kind):
    """Draw x and a weight: sizes past the tiles' edges, and any K that the format has."""
    M, N = data.draw(st.integers(1, 80)), data.draw(st.integers(1, 70))
    K = data.draw(st.integers(1, 5)) * int(kind.partition("-")[2] or 1) * (1 if "-" in kind else 13)
    dtype = data.draw(st.sampled_from(DTYPES))
    torch.manual_seed(data.draw(st.integers(0, 99)))
    return torch.randn(M, K, device=DEVICE).to(dtype), make(kind, N, K, dtype)


@pytest.mark.parametrize("way", ["fused", "buffer"])
@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=5, deadline=None)
@given(st.data())
def test_any_sizes(kind, way, data):
    x, weight = operands(data, kind)
    w = weight.dequantize(torch.float64)
    exact, size = x.double() @ w.T, x.double().abs() @ w.abs().T
    rounded = way == "buffer" or "int4" in kind  # the weight itself, to x's dtype, where 2⁻²⁵ is half of the least unit
    of_weight = 1.01 * UNIT[x.dtype] * size + 2**-25 * x.double().abs().sum(1, keepdim=True) if rounded else 0.0
    found = many_rows(x, weight, way)
    expect_within(found, exact, (x.shape[1] * 2**-24 + 2**-20) * size + of_weight, x.dtype)


@pytest.mark.parametrize("kind", CODES)
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_any_sizes_with_x_in_8_bits(kind, data):
    x, weight = operands(data, kind)
    codes, scale = round_rows(x, CODES[kind])
    config = data.draw(st.sampled_from([None, Config(32, 64, 64, 1)] if DEVICE == "cpu" else [None]))
    found = rounded_rows(codes, scale, weight, x.dtype, config, fast=data.draw(st.booleans()))
    w, rounded = weight.dequantize(torch.float64), codes.double() * scale.double()[:, None]
    size = rounded.abs() @ w.abs().T
    expect_within(found, rounded @ w.T, (x.shape[1] * STEP[kind] + 2**-21) * size, x.dtype)
    # against x itself: half a step, which for float8 is up to 1/16 of the value
    half = (
        scale.double()[:, None] / 2
        if kind == "int8"
        else (x.double().abs() / 16).clamp(min=scale.double()[:, None] / 2**10)
    )
    expect_within(found, x.double() @ w.T, half.expand(x.shape) @ w.abs().T * 1.001 + 1e-3 * size, x.dtype)


@pytest.mark.parametrize("dtype", CODES.values())
@settings(max_examples=10, deadline=None)
@given(M=st.integers(1, 6), K=st.integers(1, 300), power=st.integers(-20, 12), seed=st.integers(0, 99))
def test_rows_are_rounded_to_nearest_even(dtype, M, K, power, seed):
    torch.manual_seed(seed)
    x = torch.randn(M, K, device=DEVICE) * 2.0**power
    x[0] *= torch.rand(K, device=DEVICE) < 0.1  # zeros, and maybe nothing else
    # PyTorch divides by a number exactly on a CPU, and on a GPU multiplies by its reciprocal.
    codes, scale, x = (tensor.cpu() for tensor in (*round_rows(x, dtype), x))
    most, largest = INT8_MAX if dtype == torch.int8 else FP8_MAX, x.abs().amax(1)
    assert torch.equal(scale, torch.where(largest > 0, largest, most) / most)
    wanted = x / scale[:, None]
    assert torch.equal(codes.float(), (wanted.round() if dtype == torch.int8 else wanted).to(dtype).float())


def test_a_row_longer_than_a_program_holds_and_ties():
    x = torch.randn(3, 700, device=DEVICE)
    x[0, 600] = -9
    codes, scale = round_rows(x, torch.int8)
    again, other = torch.empty_like(codes), torch.empty_like(scale)
    _launch_for(3, 700, x.dtype, torch.int8, x.device, 0, 256)(x, again, other)
    assert torch.equal(codes, again) and torch.equal(scale, other)
    ties = torch.tensor([[127.0, 0.5, 1.5, -2.5, 126.5]], device=DEVICE)
    assert round_rows(ties, torch.int8)[0].tolist() == [[127, 0, 2, -2, 126]]
    ties = torch.tensor([[448.0, 124.0, 17.0, 19.0, -(2.0**-10), 3 * 2.0**-10]], device=DEVICE)
    assert round_rows(ties, FP8)[0].tolist() == [[448, 128, 16, 20, 0, 2 * 2.0**-9]]


@pytest.mark.filterwarnings("ignore:invalid value")  # NumPy, in the interpreter
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_spoils_its_row_alone(bad):
    x = torch.ones(3, 40, device=DEVICE)
    x[1, 7] = bad
    y = rounded_product(x, make("int8", 5, 40, x.dtype))
    assert not y[1].isfinite().any() and y[0].isfinite().all() and y[2].isfinite().all()


@pytest.mark.parametrize("kind", FORMATS)
def test_the_buffer_is_the_dequantized_weight(kind):
    weight = make(kind, 37, 384, torch.float16)
    assert torch.equal(dequantized(weight, torch.float16), weight.dequantize(torch.float16))


def test_the_way_and_the_tile_follow_from_the_sizes():
    assert plan(MOST_FUSED) == "fused" and plan(MOST_FUSED + 1) == "buffer"
    tiles = [many_rows_config(M, 4096, True, "sm_90", 132) for M in (65, 256, 4096)]
    assert [(c.BLOCK_M, c.BLOCK_N) for c in tiles] == [(64, 64), (128, 64), (128, 256)]


def test_operands_that_do_not_fit_are_refused():
    w = Int8Weight.quantize(torch.ones(6, 64, device=DEVICE))
    x = torch.ones(70, 64, device=DEVICE)
    codes, scale = round_rows(x, torch.int8)
    with pytest.raises(ValueError, match=r"x is \(70, 63\); it has to be \(M, 64\)"):
        fused_rows(x[:, 1:], w)
    with pytest.raises(ValueError, match="x is not contiguous"):
        fused_rows(torch.ones(64, 70, device=DEVICE).T, w)
    with pytest.raises(ValueError, match="x is in torch.int8; floats are needed"):
        fused_rows(codes, w)
    with pytest.raises(ValueError, match="x is in torch.float32; torch.int8, as the weight's codes, is needed"):
        rounded_rows(x, scale, w, x.dtype)
    with pytest.raises(ValueError, match=r"x's scale is \(3,\)"):
        rounded_rows(codes, scale[:3], w, x.dtype)
    with pytest.raises(TypeError, match="a weight is Tensor"):
        fused_rows(x, x)
    with pytest.raises(TypeError, match="x is rounded for int8 and float8 weights"):
        rounded_product(x, make("int4-64", 6, 64, x.dtype))
    int4 = make("int4-32", 6, 64, x.dtype)
    for wrong in ({"group": 48}, {"group": 0}, {"K": 63}):
        for product in (partial(fused_rows, x[:, : wrong.get("K", 64)]), partial(dequantized, dtype=x.dtype)):
            with pytest.raises(ValueError, match=r"the group has to be one of \(32, 64, 128\), and K its multiple"):
                product(weight=replace(int4, **wrong))
    with pytest.raises(ValueError, match=r"contiguous floats \(M, K\) are needed"):
        round_rows(x.T, torch.int8)
    with pytest.raises(ValueError, match="rounded to int8 or float8_e4m3fn"):
        round_rows(x, torch.int16)
    with pytest.raises(ValueError, match="way is 'loop'; it may be fused or buffer"):
        many_rows(x, w, "loop")


@pytest.mark.parametrize(
    ("capability", "architecture", "named"),
    [((8, 0), "sm_80", "this is Chip, compute capability 8.0"), (None, "gfx942", "this is Chip, gfx942")],
)
def test_a_chip_without_float8_is_named(monkeypatch, capability, architecture, named):
    x, weight = torch.ones(70, 32, device=DEVICE), make("fp8", 4, 32, torch.float32)
    here = SimpleNamespace(device="cuda", name="Chip", capability=capability, architecture=architecture)
    monkeypatch.setattr(chips, "this_machine", lambda: here)
    for product in (fused_rows, rounded_product):
        with pytest.raises(RuntimeError, match=f"float8 e4m3 needs compute capability 8.9 or newer, and {named}"):
            product(x, weight)


@pytest.mark.parametrize("kind", CODES)
def test_the_operator_rounds_x_with_many_rows(kind):
    weight = make(kind, 20, 96, torch.float32)
    x = torch.randn(70, 2, 96, device=DEVICE)[:, 0]  # the operator copies what is not contiguous
    keywords = {"group": 0, "K": 96, "round_x": True}
    assert torch.equal(
        quantized_product(x, weight.q, weight.scale, **keywords), rounded_product(x.contiguous(), weight)
    )
    few = quantized_product(x[:64], weight.q, weight.scale, **keywords)
    assert torch.equal(few, quantized_product(x[:64], weight.q, weight.scale, **keywords | {"round_x": False}))
    torch.library.opcheck(quantized_product, (x, weight.q, weight.scale), keywords, test_utils="test_faketensor")
