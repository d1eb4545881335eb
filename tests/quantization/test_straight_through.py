"""Test training through a rounding: its forward pass, its gradient, and the weights that it leaves."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from labs_helpers.quantization.straight_through import quantization_aware
from tests.quantization.models import small, tokens


def coarse(w):
    return (w * 4).round() / 4


def test_the_forward_pass_rounds_and_the_backward_pass_does_not():
    layer, x = nn.Linear(6, 3, bias=False), torch.randn(5, 6)
    weight, target = layer.weight.detach().clone(), torch.randn(5, 3)
    with quantization_aware(layer, coarse):
        y = layer(x)
        F.mse_loss(y, target).backward()
        gradient = layer.parametrizations.weight.original.grad
    rounded = coarse(weight)
    assert torch.equal(y, x @ rounded.T)
    assert torch.allclose(gradient, 2 / y.numel() * (x @ rounded.T - target).T @ x, atol=1e-6)
    assert torch.equal(layer.weight, weight)


def test_small_updates_add_up():
    """Weights that were rounded after each update of 0.01 would never move."""
    layer, x = nn.Linear(4, 2, bias=False), torch.eye(4)
    nn.init.zeros_(layer.weight)
    goal = torch.full((4, 2), 0.5)
    with quantization_aware(layer, coarse):
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.08)
        for _ in range(200):
            optimizer.zero_grad()
            F.mse_loss(layer(x), goal).backward()
            optimizer.step()
    assert (coarse(layer.weight) == 0.5).all() and not (layer.weight == coarse(layer.weight)).any()


def test_a_model_has_its_layers_back():
    model, x = small(), tokens()
    names, expected = [name for name, _ in model.named_parameters()], model(x)
    with pytest.raises(KeyError), quantization_aware(model, coarse):
        assert not torch.allclose(model(x), expected)
        raise KeyError
    assert [name for name, _ in model.named_parameters()] == names
    assert torch.equal(model(x), expected)
