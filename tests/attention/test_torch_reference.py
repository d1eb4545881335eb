"""The reference in plain PyTorch agrees with torch's own attention and its gradient, in float64."""

import pytest
import torch
from torch.nn.attention.bias import causal_lower_right

from labs_helpers.attention import torch_reference

SHAPES = [(2, 2, 2, 5, 7, 3), (1, 6, 2, 8, 8, 4), (2, 3, 1, 4, 9, 1), (1, 2, 1, 7, 4, 5)]  # B, H, Hkv, Lq, Lk, D
# torch gives NaN to a row without a key: with Lq > Lk and the causal mask there is nothing to compare with.
SEEN = [(shape, causal) for shape in SHAPES for causal in (False, True) if shape[3] <= shape[4] or not causal]


def operands(B, H, Hkv, Lq, Lk, D, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(B, heads, length, D, generator=generator, dtype=torch.float64).to(dtype)
        for heads, length in ((H, Lq), (Hkv, Lk), (Hkv, Lk), (H, Lq))
    ]


def torch_attention(q, k, v, causal, scale):
    Lq, Lk = q.shape[2], k.shape[2]
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    # As a matrix: the bias object itself refuses head dims that are no multiple of 8.
    bias = causal_lower_right(Lq, Lk)._materialize() if causal else None
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)


@pytest.mark.parametrize(("shape", "causal"), SEEN, ids=str)
@pytest.mark.parametrize("scale", [None, -0.7])
def test_values_and_gradients_are_those_of_torch(shape, causal, scale):
    *inputs, do = operands(*shape)
    for x in inputs:
        x.requires_grad_()
    expected = torch_attention(*inputs, causal, scale)
    o, lse = torch_reference.attention_forward(*(x.detach() for x in inputs), causal, scale)
    torch.testing.assert_close(o, expected.detach())
    assert lse.shape == o.shape[:3] and lse.dtype == torch.float64
    expected = torch.autograd.grad(expected, inputs, do)
    for gradient, wanted in zip(
        torch.autograd.grad(torch_reference.flash_attention(*inputs, causal, scale), inputs, do), expected, strict=True
    ):
        torch.testing.assert_close(gradient, wanted)


def test_a_query_that_sees_no_key_gives_zeros_and_minus_infinity():
    q, k, v, do = operands(1, 2, 1, 7, 4, 5)
    o, lse = torch_reference.attention_forward(q, k, v, causal=True)
    assert (o[:, :, :3] == 0).all() and (lse[:, :, :3] == -torch.inf).all() and lse[:, :, 3:].isfinite().all()
    rest, rest_lse = torch_reference.attention_forward(q[:, :, 3:], k, v, causal=True)
    torch.testing.assert_close(o[:, :, 3:], rest)
    gradients = torch_reference.attention_backward(q, k, v, o, lse, do, causal=True)
    expected = torch_reference.attention_backward(q[:, :, 3:], k, v, rest, rest_lse, do[:, :, 3:], causal=True)
    assert (gradients[0][:, :, :3] == 0).all()
    for gradient, wanted in zip((gradients[0][:, :, 3:], *gradients[1:]), expected, strict=True):
        torch.testing.assert_close(gradient, wanted)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_gradcheck(shape, causal):
    inputs = [x.requires_grad_() for x in operands(*shape)[:3]]
    assert torch.autograd.gradcheck(lambda q, k, v: torch_reference.flash_attention(q, k, v, causal, 0.4), inputs)


def test_lse_is_the_natural_logarithm_of_the_sum():
    q, k, v, _ = operands(1, 1, 1, 3, 4, 2)
    lse = torch_reference.attention_forward(q, k, v, scale=0.5)[1]
    torch.testing.assert_close(lse, (0.5 * q @ k.mT).exp().sum(-1).log())


def test_it_saves_q_k_v_o_and_lse():
    q, k, v, _ = (x.requires_grad_() for x in operands(1, 4, 2, 6, 9, 3))
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.shape) or t, lambda t: t):
        o = torch_reference.flash_attention(q, k, v)
    assert saved == [q.shape, k.shape, v.shape, o.shape, o.shape[:3]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_other_dtypes_are_computed_in_float32_and_rounded_once(dtype):
    q, k, v, do = operands(1, 2, 1, 6, 9, 8, dtype)
    o, lse = torch_reference.attention_forward(q, k, v, causal=True)
    assert o.dtype == dtype and lse.dtype == torch.float32
    wide = torch_reference.attention_forward(q.float(), k.float(), v.float(), causal=True)
    assert torch.equal(o, wide[0].to(dtype)) and torch.equal(lse, wide[1])
    assert all(g.dtype == dtype for g in torch_reference.attention_backward(q, k, v, o, lse, do, causal=True))


def test_bad_operands_are_named():
    q, k, v, do = operands(1, 4, 2, 6, 9, 3)
    with pytest.raises(ValueError, match="q has 4 heads, which is no multiple of the 3"):
        torch_reference.flash_attention(q, k[:, :1].expand(1, 3, 9, 3), v[:, :1].expand(1, 3, 9, 3))
    with pytest.raises(ValueError, match="scale is inf"):
        torch_reference.attention_forward(q, k, v, scale=torch.inf)
    o, lse = torch_reference.attention_forward(q, k, v)
    with pytest.raises(TypeError, match="lse is torch.float32, expected torch.float64"):
        torch_reference.attention_backward(q, k, v, o, lse.float(), do)
    with pytest.raises(TypeError, match="k is torch.float32, but q is torch.float64"):
        torch_reference.attention_forward(q, k.float(), v.float())
