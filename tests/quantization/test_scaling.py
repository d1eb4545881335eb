"""Test that scales move through a model without a change of its function, and what calibration sees."""

import pytest
import torch

from labs_helpers.quantization.scaling import calibrate, matrix_groups, migrate, norm_groups
from tests.quantization.models import small, tokens


@pytest.mark.parametrize("groups", [norm_groups, matrix_groups])
def test_migrated_scales_leave_the_function(groups):
    model, x = small(), tokens()
    expected = model(x)
    generator = torch.Generator().manual_seed(1)
    for group in groups(model):
        before = group.readers[0].weight.clone()
        migrate(group, scale := torch.rand(before.shape[1], generator=generator) * 4 + 0.1)
        assert torch.allclose(group.readers[0].weight, before * scale)
    assert torch.allclose(model(x), expected, atol=1e-4, rtol=1e-4)


def test_powers_of_two_change_no_bit():
    for dtype in (torch.float32, torch.bfloat16):
        model, x = small(dtype=dtype), tokens()
        expected = model(x)
        for group in norm_groups(model):
            migrate(group, torch.tensor([0.25, 8.0]).repeat(32).to(dtype))
        assert torch.equal(model(x), expected)


def test_calibration_sees_the_inputs_in_order():
    model, x = small(), tokens()
    norms, matrices = calibrate(model, norm_groups(model), x), calibrate(model, matrix_groups(model), x)
    first = model.blocks[0].attention_norm(model.embedding(x)).flatten(0, 1)
    assert torch.allclose(norms[0], first) and len(norms) == 4
    mlp = model.blocks[0].mlp
    inner = torch.nn.functional.silu(mlp.gate(norms[1])) * mlp.up(norms[1])
    assert torch.allclose(matrices[1], inner, atol=1e-5)
    assert [part.shape for part in matrices] == [(128, 64), (128, 96)] * 2
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_shared_values_keep_wo_out():
    names = [group.name for group in matrix_groups(small(kv_heads=2))]
    assert names == ["blocks.0.mlp.down", "blocks.1.mlp.down"]
