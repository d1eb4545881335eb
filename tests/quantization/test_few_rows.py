"""The few-rows product against float64, in every format and with everything that can be fused into it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.quantization.kernels.few_rows import few_rows
from labs_helpers.quantization.weights import Fp8Weight, Int4Weight, Int8Weight, PairedInt4Weight

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The interpreter's dot product takes the bits of bfloat16 for whole numbers.
DTYPES = [torch.float32, torch.float16] + [torch.bfloat16] * (DEVICE == "cuda")
EPS = 1e-5
UNIT = {torch.float32: 2**-24, torch.bfloat16: 2**-8, torch.float16: 2**-11}  # relative, of rounding to nearest


def make(kind, N, K, dtype):
    w = torch.randn(N, K, device=DEVICE) / K**0.5
    if kind == "dense":
        return w.to(dtype)
    if kind == "int8":
        return Int8Weight.quantize(w)
    if kind == "fp8":
        return Fp8Weight.quantize(w)
    return PairedInt4Weight.of(Int4Weight.quantize(w, int(kind.removeprefix("int4-"))))


def dense(weight):
    return weight.double() if isinstance(weight, torch.Tensor) else weight.dequantize(torch.float64)


def wanted(x, weight, norm=None, residual=None, up=None):
    """Return the result in float64, and the largest error that rounding may cause."""
    wide = x.double()
    if norm is not None:
        wide = wide * norm.double() * (wide.square().mean(1, keepdim=True) + EPS).rsqrt()
    unit = UNIT[x.dtype] if norm is not None else 0.0  # of the normalized x
    sums = x.shape[1] * 2**-24 + 4 * unit + 2**-20
    y, size = wide @ dense(weight).T, wide.abs() @ dense(weight).abs().T
    bound = sums * size
    if up is not None:
        other, other_size = wide @ dense(up).T, wide.abs() @ dense(up).abs().T
        # |silu'| ≤ 1.1, |silu(y)| ≤ |y|
        bound = 1.1 * bound * (other.abs() + sums * other_size) + y.abs() * sums * other_size
        y = torch.nn.functional.silu(y) * other
    if residual is not None:
        y = y + residual.double()
    return y, bound + 1.01 * UNIT[x.dtype] * (y.abs() + bound) + 1e-30


def agrees(x, weight, parts=None, **more):
    y, bound = wanted(x, weight, **more)
    found = few_rows(x, weight, eps=EPS, parts=parts, **more)
    assert found.dtype == x.dtype and found.shape == y.shape
    assert ((found.double() - y).abs() <= bound).all(), ((found.double() - y).abs() / bound).max()
    assert torch.equal(found, few_rows(x, weight, eps=EPS, parts=parts, **more))  # the same bits


KINDS = ["dense", "int8", "fp8", "int4-32", "int4-64", "int4-128"]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, deadline=None)
@given(st.data())
def test_any_sizes(kind, data):
    M, N = data.draw(st.integers(1, 33)), data.draw(st.integers(1, 40))
    K = data.draw(st.integers(1, 5)) * int(kind.partition("-")[2] or 1) * (1 if "-" in kind else 13)
    dtype = data.draw(st.sampled_from(DTYPES))
    torch.manual_seed(data.draw(st.integers(0, 99)))
    x = torch.randn(M, K, device=DEVICE).to(dtype)
    agrees(x, make(kind, N, K, dtype), data.draw(st.sampled_from([None, 1, 2, 3])))


@pytest.mark.parametrize("kind", ["dense", "int8", "int4-32"])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("fused", ["norm", "residual", "up", "norm residual up"])
def test_what_is_fused(kind, parts, fused):
    torch.manual_seed(0)
    M, N, K, dtype = 3, 40, 192, DTYPES[-1]
    x, more = torch.randn(M, K, device=DEVICE).to(dtype), {}
    if "norm" in fused:
        more["norm"] = (1 + 0.1 * torch.randn(K, device=DEVICE)).to(dtype)
    if "residual" in fused:
        more["residual"] = torch.randn(M, N, device=DEVICE).to(dtype)
    if "up" in fused:
        more["up"] = make(kind, N, K, dtype)
    agrees(x, make(kind, N, K, dtype), parts, **more)


def test_operands_that_do_not_fit_are_refused():
    x, w = torch.zeros(2, 64, device=DEVICE), torch.zeros(3, 64, device=DEVICE)
    with pytest.raises(ValueError, match=r"x is \(65, 64\); it has to be \(M, 64\) with 1 to 64 rows"):
        few_rows(x.new_zeros(65, 64), w)
    with pytest.raises(ValueError, match=r"x is \(2, 63\)"):
        few_rows(x[:, 1:], w)
    with pytest.raises(ValueError, match="the weight is in torch.float32, and x in torch.float16"):
        few_rows(x.half(), w)
    with pytest.raises(ValueError, match=r"residual is \(2, 2\); it has to be \(2, 3\)"):
        few_rows(x, w, residual=x.new_zeros(2, 2))
    with pytest.raises(ValueError, match="up is 4 × 64; it has to have the weight's shape, 3 × 64"):
        few_rows(x, w, up=w.new_zeros(4, 64))
    with pytest.raises(ValueError, match="the weight is not contiguous"):
        few_rows(x, torch.zeros(64, 3, device=DEVICE).T)
    needed = r"a weight is Int4Weight; int4 weights are read as PairedInt4Weight.of\(weight\)"
    with pytest.raises(TypeError, match=needed):
        few_rows(x, Int4Weight.quantize(w, 32))
