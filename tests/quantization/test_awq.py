"""Test AWQ's search against one in NumPy, and what it does to a model with outliers."""

import math

import numpy as np
import pytest
import torch

from labs_helpers.quantization.awq import importance_scale, protect, search_scale
from tests.quantization.models import error_with_outliers, grouped_int4


def layer(seed, outputs, channels=64, rows=40):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, channels, generator=generator)
    x[:, [3, 50]] *= 20
    return x, torch.randn(outputs, channels, generator=generator)


def test_the_search_is_the_one_of_numpy():
    x, first = layer(0, 24)
    second = layer(1, 16)[1]
    found = search_scale([first, second], x, grouped_int4, grid=10)
    X, errors = x.double().numpy(), []
    for step in range(11):
        s = np.abs(X).mean(0) ** (step / 10)
        s = s / math.sqrt(s.max() * s.min())
        error = 0.0
        for w in (first, second):
            W = w.double().numpy()
            rounded = grouped_int4(torch.from_numpy(W * s)).numpy() / s
            error += ((X @ W.T - X @ rounded.T) ** 2).mean()
        errors.append(error)
    # A weight that lies on the border between two codes may round otherwise in float32.
    assert found.errors == pytest.approx(errors, rel=0.02)
    assert found.alpha == np.argmin(errors) / 10 and 0 < found.alpha
    assert torch.equal(found.scale, importance_scale(x.abs().mean(0), found.alpha))


def test_no_scale_is_rounding_to_nearest():
    x, w = layer(0, 24)
    error = (x @ w.T - x @ grouped_int4(w).T).square().mean().item()
    assert search_scale([w], x, grouped_int4).errors[0] == pytest.approx(error, rel=1e-4)


def test_without_rounding_nothing_is_scaled():
    x, w = layer(0, 24)
    assert search_scale([w], x, lambda w: w).errors == pytest.approx([0.0] * 21, abs=1e-9)


def test_a_channel_of_zeros_has_a_scale():
    s = importance_scale(torch.tensor([0.0, 1.0, 4.0]), 0.5)
    assert torch.isfinite(s).all() and (s > 0).all() and s.max() * s.min() == pytest.approx(1)


def test_it_mends_what_outliers_break():
    searches = {}
    mended = error_with_outliers(32, lambda model, x: searches.update(protect(model, x, grouped_int4)), grouped_int4)
    assert mended < error_with_outliers(32, lambda model, x: None, grouped_int4) / 2
    assert len(searches) == 8 and searches["blocks.0.attention"].alpha > 0
