"""Test SmoothQuant against its formula in NumPy, and what it does to a model with outliers."""

import numpy as np
import pytest
import torch

from labs_helpers.quantization.outliers import make_outliers
from labs_helpers.quantization.scaling import calibrate, norm_groups
from labs_helpers.quantization.simulation import int8_per_token
from labs_helpers.quantization.smoothquant import smooth, smoothing_scale
from tests.quantization.models import error_with_outliers, small, tokens


def per_row_int8(w):
    scale = w.abs().amax(1, keepdim=True) / 127
    return (w / scale).round() * scale


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 1.0])
def test_the_scale_is_the_papers(alpha):
    x, w = np.random.default_rng(0).uniform(0.01, 9, (2, 50))
    expected = [xj**alpha / wj ** (1 - alpha) for xj, wj in zip(x, w, strict=True)]
    assert np.allclose(smoothing_scale(torch.tensor(x), torch.tensor(w), alpha), expected)


def test_half_makes_activations_and_weights_equally_large():
    model, x = small(), tokens()
    make_outliers(model, channels=3, factor=32)
    smooth(model, x)
    for group, inputs in zip(norm_groups(model), calibrate(model, norm_groups(model), x), strict=True):
        weights = torch.cat([reader.weight for reader in group.readers]).abs().amax(0)
        assert torch.allclose(inputs.abs().amax(0), weights, rtol=1e-3)


def test_channels_of_zeros_keep_their_scale():
    assert smoothing_scale(torch.tensor([0.0, 4.0, 4.0]), torch.tensor([2.0, 0.0, 1.0]), 0.5).tolist() == [1, 1, 2]


@pytest.mark.parametrize("alpha", [-0.1, 1.5])
def test_alpha_is_a_share(alpha):
    with pytest.raises(ValueError, match="alpha is"):
        smoothing_scale(torch.ones(2), torch.ones(2), alpha)


def test_it_mends_what_outliers_break():
    rounded = error_with_outliers(256, lambda model, x: None, per_row_int8, int8_per_token)
    assert error_with_outliers(256, smooth, per_row_int8, int8_per_token) < rounded / 20
