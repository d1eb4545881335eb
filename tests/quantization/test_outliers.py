"""Test that outliers are made where they are wanted, and change nothing."""

import pytest
import torch

from labs_helpers.quantization.outliers import make_outliers, outlier_ratio
from tests.quantization.models import small, tokens


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_outputs_are_the_same_bit_for_bit(dtype):
    model, x = small(dtype=dtype), tokens()
    expected, before = model(x), outlier_ratio(model, x)
    make_outliers(model, channels=2, factor=64)
    assert torch.equal(model(x), expected)
    assert outlier_ratio(model, x) > 8 * before


def test_so_many_channels_are_larger():
    model, plain = small(), small()
    make_outliers(model, channels=3, factor=16, seed=5)
    for block, other in zip(model.blocks, plain.blocks, strict=True):
        ratio = block.mlp_norm.weight / other.mlp_norm.weight
        assert sorted(ratio.tolist()) == [1] * 61 + [16] * 3
        chosen = ratio == 16
        assert torch.equal(block.mlp.up.weight[:, chosen] * 16, other.mlp.up.weight[:, chosen])


def test_the_seed_chooses_the_channels():
    def chosen(seed):
        model = small()
        make_outliers(model, seed=seed)
        return model.blocks[0].mlp_norm.weight.tolist()

    assert chosen(0) == chosen(0) != chosen(1)


@pytest.mark.parametrize(("options", "said"), [({"factor": 10}, "power of two"), ({"channels": 65}, "norm has 64")])
def test_it_refuses(options, said):
    with pytest.raises(ValueError, match=said):
        make_outliers(small(), **options)
