"""Test the loss by parts and its differences, and the model that computes as a quantized one."""

import math

import numpy as np
import pytest
import torch

from labs_helpers.quantization.quality import difference, losses
from labs_helpers.quantization.simulation import fp8_per_token, int8_per_token, simulate
from labs_helpers.transformer.text import validation_sample
from labs_helpers.transformer.train import evaluate, next_token_loss
from tests.quantization.models import grouped_int4, small, tokens


def test_the_parts_hold_every_window_once():
    model = small()
    found = losses(model, windows=12, length=16, parts=4, batch=5)
    x, y = validation_sample(12, 16)
    assert found.tolist() == pytest.approx(
        [next_token_loss(model(x[i::4]), y[i::4]).item() for i in range(4)], rel=1e-5
    )
    assert found.mean().item() == pytest.approx(evaluate(model, 16, 12), rel=1e-5)


def test_parts_are_equally_large():
    with pytest.raises(ValueError, match="10 windows"):
        losses(small(), windows=10, length=16, parts=4)


def test_a_difference_has_the_error_of_its_mean():
    a, b = np.random.default_rng(0).normal(size=(2, 8))
    found = difference(torch.from_numpy(a), torch.from_numpy(b))
    assert found.mean == pytest.approx(np.mean(a - b))
    assert found.error == pytest.approx(math.sqrt(np.var(a - b, ddof=1) / 8))


def test_activations_round_per_token():
    x = torch.randn(3, 5, 40) * torch.tensor([0.01, 1, 100])[:, None, None]
    x[1, 2] = 0
    wide = x.double().numpy()
    scale = np.abs(wide).max(-1, keepdims=True).clip(1e-12) / 127
    assert np.allclose(int8_per_token(x), np.rint(wide / scale) * scale, rtol=1e-4)
    error = np.abs(fp8_per_token(x).double().numpy() - wide)
    largest = np.abs(wide).max(-1, keepdims=True)
    # e4m3 has 3 bits after the leading one, and steps of 2^-9 below 2^-6; the largest value is mapped to 448.
    assert (error <= np.maximum(np.abs(wide) * 2**-4, largest / 448 * 2**-10) * (1 + 1e-5)).all() and error.max() > 0


def test_a_simulated_model_rounds_what_its_products_read():
    model, x = small(), tokens()
    plain = small()
    simulate(model, grouped_int4, int8_per_token)
    for name, weight in model.named_parameters():
        old = plain.get_parameter(name)
        is_linear = weight.ndim == 2 and "embedding" not in name
        assert torch.equal(weight, grouped_int4(old) if is_linear else old)
    inputs = torch.randn(7, 64)
    layer = model.blocks[0].mlp.up
    assert torch.equal(layer(inputs), int8_per_token(inputs) @ layer.weight.T)
    assert not torch.equal(model(x), plain(x))
