"""Test which ways to save memory silently give wrong gradients, and which do not."""

import pytest
import torch

from labs_helpers.transformer.lab01 import saving_memory


def test_a_reentrant_first_layer_gets_no_gradient():
    table = saving_memory.checkpointed_first_layer()
    first, warned = table["first layer's gradient"], table["warning"]
    assert torch.isnan(torch.tensor(first["use_reentrant=True"]))
    assert "Gradients will be None" in warned["use_reentrant=True"]
    assert first["use_reentrant=False"] == first["no checkpoint"] > 0
    assert warned["use_reentrant=False"] == warned["no checkpoint"] == ""
    assert table["second layer's"].nunique() == 1


@pytest.mark.parametrize("sizes", [(24, 24), (8,) * 6, (48,)])
def test_equal_micro_batches_add_up_to_the_batch(sizes):
    assert saving_memory.accumulated(sizes) < 1e-14


@pytest.mark.parametrize("sizes", [(20, 20, 8), (47, 1)])
def test_unequal_ones_do_not_unless_they_are_weighted(sizes):
    assert saving_memory.accumulated(sizes) > 0.01
    assert saving_memory.accumulated(sizes, weighted=True) < 1e-14


def test_the_table_has_both():
    table = saving_memory.accumulation()
    wrong = table["mean of means"] > 1e-3
    assert list(wrong[wrong].index) == ["20 + 20 + 8"] and (table["weighted by size"] < 1e-14).all()
