"""The gradients of weights that are computed later are those of one backward pass."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.pipeline.split_backward import add_weight_gradients, leave_weights_for_later
from labs_helpers.tensor_parallel import ParallelTransformer
from labs_helpers.transformer import Transformer, TransformerConfig
from labs_helpers.transformer.checkpointing import checkpoint_segments

CONFIG = TransformerConfig(16, layers=2, width=8, heads=2, hidden=12, context=8)


def gradients(model: nn.Module, later=None, passes: int = 2) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    for _ in range(passes):
        tokens = torch.randint(16, (2, 6), generator=generator)
        model(tokens).square().mean().backward()
        if later is not None:
            add_weight_gradients(later.take())
    return {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("segments", [[], [1, 1]], ids=["stashed", "checkpointed"])
def test_a_transformer_gets_the_same_gradients(tied, segments):
    config = dataclasses.replace(CONFIG, tied=tied)
    one, other = Transformer(config).double(), Transformer(config).double()
    other.load_state_dict(one.state_dict())
    checkpoint_segments(other, segments)
    expected, found = gradients(one), gradients(other, leave_weights_for_later(other))
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("scheme", ["megatron", "naive"])
def test_so_does_a_tensor_parallel_one(scheme):
    group = SilentCommunication(0, 2)
    one, other = (ParallelTransformer(CONFIG, group, scheme=scheme).double() for _ in range(2))
    other.load_state_dict(one.state_dict())
    later = leave_weights_for_later(other)
    expected, found = gradients(one), gradients(other, later)
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-12, atol=1e-14)


def test_the_first_half_leaves_every_weight_and_computes_the_rest():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    later = leave_weights_for_later(model)
    x = torch.randn(5, 3, requires_grad=True)
    model(x).sum().backward()
    assert model[0].weight.grad is None
    assert model[2].weight.grad is None
    assert x.grad is not None
    assert model[0].bias.grad is not None
    entries = later.take()
    assert [id(weight) for weight, _, _ in entries] == [id(model[2].weight), id(model[0].weight)]
    assert later.take() == []
    add_weight_gradients(entries)
    assert model[0].weight.grad is not None
    assert entries == [], "W drops its inputs"


def test_nothing_is_left_without_gradients():
    model = nn.Sequential(nn.Linear(3, 4))
    later = leave_weights_for_later(model)
    with torch.no_grad():
        model(torch.randn(5, 3))
    model[0].weight.requires_grad_(False)
    model(torch.randn(5, 3, requires_grad=True)).sum().backward()
    assert later.take() == []
