"""Test that all implementations of attention agree, forward and backward."""

import dataclasses

import pytest
import torch

from labs_helpers.transformer import Transformer
from labs_helpers.transformer.attentions import ATTENTIONS, plain
from tests.transformer.independent import GROUPED, randomised

SHAPES = [(1, 1, 1, 1, 16), (2, 4, 2, 33, 16), (1, 6, 1, 40, 32), (1, 3, 3, 65, 16)]  # B, H, Hkv, L, D


def gradients(attention, B, H, Hkv, L, D):
    """o and the gradients of q, k and v."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(B, L, heads, D, generator=generator).transpose(1, 2).requires_grad_() for heads in (H, Hkv, Hkv)
    )
    o = attention(q, k, v)
    return o, *torch.autograd.grad(o, (q, k, v), torch.randn(o.shape, generator=generator))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", [name for name in ATTENTIONS if name != "plain"])
def test_agrees_with_plain(name, shape):
    for ours, theirs in zip(gradients(ATTENTIONS[name], *shape), gradients(plain, *shape), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_transformer_takes_it(name):
    tokens = torch.arange(40)[None]
    config = dataclasses.replace(GROUPED, width=96)  # head dim 16: the kernels' least
    model = randomised(Transformer(config, ATTENTIONS[name]))
    expected = randomised(Transformer(config))(tokens)
    torch.testing.assert_close(model(tokens), expected, rtol=1e-4, atol=1e-4)


def test_plain_takes_and_gives_bfloat16():
    q, k, v = (torch.randn(1, 2, 30, 16, generator=torch.Generator().manual_seed(i)) for i in range(3))
    low = [t.bfloat16() for t in (q, k, v)]
    o = plain(*low)
    assert o.dtype == torch.bfloat16
    torch.testing.assert_close(o.float(), plain(*(t.float() for t in low)), rtol=3e-2, atol=3e-2)
