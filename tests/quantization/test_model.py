"""Quantized models compute what their dequantized weights compute, shrink, and load again."""

import pytest
import torch
from torch import nn

from labs_helpers.quantization.linear import QuantizedLinear
from labs_helpers.quantization.model import ROUNDED, SCHEMES, quantize, resident_bytes
from labs_helpers.quantization.weights import Int4Weight


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(256, 48, bias=False), nn.ReLU(), nn.Linear(48, 128), nn.ReLU(), nn.Linear(128, 32))


@pytest.mark.parametrize("rows", [3, 70])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_layer_is_its_dequantized_weight(scheme, rows):
    torch.manual_seed(1)
    layer = nn.Linear(256, 40)
    quantized = quantize(nn.Sequential(layer), scheme)[0]
    x = torch.randn(2, rows, 256)[:, : rows // 2 + 1]
    w = quantized.weight.dequantize(torch.float64)
    away = (quantized(x).double() - (x.double() @ w.T + layer.bias.double())).abs()
    size = x.double().abs() @ w.abs().T + layer.bias.double().abs()
    if scheme in ROUNDED and rows > 2 * 32:  # half a step of int8, or 1/16 of a value in float8
        largest = x.double().abs().amax(2, keepdim=True)
        step = (largest / 254 if scheme == "w8a8" else x.double().abs() / 16 + largest / 448 / 2**10).expand(x.shape)
        away = away - 1.001 * step @ w.abs().T
        assert (away > -step @ w.abs().T).any()
    assert (away <= (256 + 4) * 2**-24 * size).all()


def layer(scheme, K):
    return quantize(nn.Sequential(nn.Linear(K, 48)), scheme)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_saved_state_loads(scheme, tmp_path):
    torch.manual_seed(0)
    first, second = layer(scheme, 384), layer(scheme, 384)  # three groups of 128
    torch.save(first.state_dict(), tmp_path / "w.pt")
    second.load_state_dict(torch.load(tmp_path / "w.pt"))
    x = torch.randn(2, 384)
    assert torch.equal(first(x), second(x))


@pytest.mark.parametrize(
    ("saved", "model", "told"),
    [
        (("int8", 192), ("fp8", 192), "saved as int8 with K = 192, and the model has float8_e4m3fn with K = 192"),
        (
            ("int4-64", 192),
            ("int4-64", 256),
            "saved as int4 in groups of 64 with K = 192, and .* int4 in groups of 64 with",
        ),
        (("int4-32", 256), ("int4-128", 256), "in groups of 32 .*and the model has int4 in groups of 128"),
        (("int4-64", 192), ("int8", 192), "0 was saved as int4 in groups of 64 .* has int8 with K = 192"),
    ],
)
def test_another_format_does_not_load(saved, model, told):
    states, skeleton = layer(*saved).state_dict(), layer(*model)
    before = skeleton[0].codes.clone()
    with pytest.raises(RuntimeError, match=told):
        skeleton.load_state_dict(states)
    assert torch.equal(skeleton[0].codes.view(torch.uint8), before.view(torch.uint8))


def test_bytes_and_kept_layers():
    whole = model()[:3]
    before = resident_bytes(whole)
    assert resident_bytes(quantize(whole, "int8")) < before / 3
    kept = quantize(nn.ModuleDict({"head": nn.Linear(64, 64), "wq": nn.Linear(64, 64)}), "int8")
    assert isinstance(kept["head"], nn.Linear)
    assert isinstance(kept["wq"], QuantizedLinear)


def test_errors():
    with pytest.raises(ValueError, match="scheme is 'int3'"):
        quantize(model(), "int3")
    with pytest.raises(ValueError, match="not a multiple of the group"):
        quantize(nn.Sequential(nn.Linear(33, 8)), "int4-32")
    with pytest.raises(ValueError, match="not for int4"):
        QuantizedLinear(Int4Weight.quantize(torch.ones(2, 32), 32), round_x=True)


@pytest.mark.parametrize("rows", [2, 70])
@pytest.mark.parametrize("scheme", ["int8", "int4-32", "w8a8"])
def test_layer_compiles_without_a_graph_break(scheme, rows):
    layer = quantize(nn.Sequential(nn.Linear(64, 16)), scheme)
    x = torch.randn(rows, 64)
    assert torch.equal(torch.compile(layer, backend="eager", fullgraph=True)(x), layer(x))
