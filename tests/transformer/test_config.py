"""Test the sizes: what is refused, with which message, and the named sizes."""

import dataclasses

import pytest

from labs_helpers.transformer import SIZES, TransformerConfig
from labs_helpers.transformer.counts import parameters

TINY = SIZES["tiny"]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"layers": 0}, "layers is 0, not an integer of 1 or more"),
        ({"hidden": 2.5}, "hidden is 2.5, not an integer"),
        ({"context": True}, "context is True"),
        ({"kv_heads": 0}, "kv_heads is 0"),
        ({"heads": 3}, "width is 128, no multiple of the 3 heads"),
        ({"width": 12}, "head_dim is 12 / 4 = 3; rotary"),
        ({"kv_heads": 3}, "heads is 4, no multiple of the 3 kv_heads"),
        ({"kv_heads": 8}, "heads is 4, no multiple of the 8 kv_heads"),
        ({"norm_eps": 0.0}, "norm_eps is 0.0; it has to be positive"),
        ({"rope_theta": -1.0}, "rope_theta is -1.0"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(TINY, **changes)


def test_keys_and_values_have_as_many_heads_as_queries_unless_told():
    config = TransformerConfig(100, layers=1, width=64, heads=4, hidden=128)
    assert config.kv_heads == config.key_value_heads == 4 and config.head_dim == 16


# GPT-2's four: 124, 355, 774 and 1558 million.
@pytest.mark.parametrize(
    "name, count",
    {
        "tiny": 459_392,
        "small": 123_587_328,
        "medium": 355_124_224,
        "large": 778_169_600,
        "xl": 1_560_116_800,
        "1b": 953_223_168,
    }.items(),
)
def test_parameters_of_the_named_sizes(name, count):
    assert sum(parameters(SIZES[name]).values()) == count


def test_the_1b_model():
    config = SIZES["1b"]
    assert (config.layers, config.width, config.heads, config.head_dim) == (16, 2048, 16, 128)
    assert (config.hidden, config.vocabulary, config.tied) == (5632, 32_000, False)


@pytest.mark.parametrize("config", SIZES.values(), ids=SIZES)
def test_the_kernels_take_the_named_sizes(config):
    assert 16 <= config.head_dim <= 128 and config.hidden % 64 == 0
