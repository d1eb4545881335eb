"""Compare the model and its parts with an independent implementation, and test the properties of a decoder."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.transformer import SIZES
from labs_helpers.transformer.attentions import ATTENTIONS, plain
from labs_helpers.transformer.model import RMSNorm, Transformer, rotary_angles, rotate
from tests.planted import planted
from tests.transformer import independent
from tests.transformer.independent import GROUPED, randomised

CALM = settings(max_examples=40)


def agrees(model_class=Transformer, attention=plain, config=GROUPED):
    model = randomised(model_class(config, attention))
    tokens = torch.randint(config.vocabulary, (2, 21), generator=torch.Generator().manual_seed(1))
    expected = independent.logits(config, model.state_dict(), tokens)
    torch.testing.assert_close(model(tokens), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "changes", [{}, {"kv_heads": 6}, {"kv_heads": 1}, {"tied": True}, {"rope_theta": 5e5}], ids=str
)
def test_logits_agree(changes):
    agrees(config=dataclasses.replace(GROUPED, **changes))


MISTAKES = {
    "mask off by one": (plain, "triu(1)", "triu(2)"),
    "no mask": (plain, "scores.masked_fill(future, -torch.inf)", "scores"),
    "scores not scaled": (plain, " * q.shape[-1] ** -0.5", ""),
    "softmax over the queries": (plain, "dim=-1, dtype", "dim=-2, dtype"),
    "k and v heads mapped wrongly": (
        plain,
        "k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)",
        "k.repeat(1, group, 1, 1), v.repeat(1, group, 1, 1)",
    ),
    "one sign of the rotation": (Transformer, "first * cos - second * sin", "first * cos + second * sin"),
    "rotation backwards": (Transformer, "return angle.cos(), angle.sin()", "return angle.cos(), -angle.sin()"),
    "pairs of neighbors": (Transformer, "x.chunk(2, dim=-1)", "(x[..., ::2], x[..., 1::2])"),
    "wavelengths doubled": (Transformer, "dtype=torch.float32) / head_dim)", "dtype=torch.float32) / 2 / head_dim)"),
    "keys not rotated": (Transformer, "rotate(k, cos, sin), v", "k, v"),
    "values rotated": (Transformer, "rotate(k, cos, sin), v", "rotate(k, cos, sin), rotate(v, cos, sin)"),
    "epsilon outside the root": (
        Transformer,
        "torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)",
        "(wide.pow(2).mean(-1, keepdim=True).sqrt() + self.eps).reciprocal()",
    ),
    "epsilon forgotten": (Transformer, " + self.eps)", ")"),
    "sum for mean": (Transformer, "wide.pow(2).mean(", "wide.pow(2).sum("),
    "gate and up exchanged": (Transformer, "F.silu(self.gate(x)) * self.up(x)", "F.silu(self.up(x)) * self.gate(x)"),
    "no norm before the MLP": (Transformer, "self.mlp(self.mlp_norm(x))", "self.mlp(x)"),
    "no last norm": (Transformer, "self.project(self.norm(x),", "self.project(x,"),
    "residual forgotten": (Transformer, "return x + self.mlp", "return self.mlp"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake, tmp_path):
    original, *change = MISTAKES[mistake]
    wrong = planted(original, tmp_path, tuple(change))
    with pytest.raises(AssertionError):
        agrees(attention=wrong) if original is plain else agrees(model_class=wrong)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
def test_rms_norm_is_torchs(scale):
    norm = randomised(RMSNorm(48, eps=1e-5))
    x = scale * torch.randn(3, 5, 48, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(norm(x), F.rms_norm(x, (48,), norm.weight, 1e-5), rtol=1e-5, atol=1e-6)


def overflows_nowhere(norm):
    x = 300 * torch.randn(4, 64, generator=torch.Generator().manual_seed(0))
    expected = F.rms_norm(x, (64,))
    torch.testing.assert_close(norm.half()(x.half()).float(), expected, rtol=3e-3, atol=1e-3)


def test_rms_norm_is_float32_inside(tmp_path):
    overflows_nowhere(RMSNorm(64, eps=1e-5))
    narrow = planted(RMSNorm, tmp_path, ("wide = x.float()", "wide = x"))
    with pytest.raises(AssertionError):
        overflows_nowhere(narrow(64, eps=1e-5))


def test_rotation_is_a_complex_product():
    x = torch.randn(2, 3, 33, 16, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        rotate(x, *rotary_angles(33, 16, 1e4)), independent.rotated(x, 1e4), rtol=1e-5, atol=1e-5
    )


@CALM
@given(seed=st.integers(0, 99), query=st.integers(0, 50), key=st.integers(0, 50), shift=st.integers(0, 200))
def test_scores_depend_on_the_relative_position_only(seed, query, key, shift):
    q, k = torch.randn(2, 16, generator=torch.Generator().manual_seed(seed))
    cos, sin = rotary_angles(251, 16, 1e4)

    def score(i, j):
        return rotate(q, cos[i], sin[i]) @ rotate(k, cos[j], sin[j])

    torch.testing.assert_close(score(query + shift, key + shift), score(query, key), rtol=1e-4, atol=1e-3)


def test_rotation_keeps_the_dtype():
    assert rotate(torch.ones(4, 8, dtype=torch.bfloat16), *rotary_angles(4, 8, 1e4)).dtype == torch.bfloat16


@CALM
@given(seed=st.integers(0, 99), length=st.integers(2, 40), data=st.data())
def test_a_later_token_changes_no_earlier_logits(seed, length, data):
    changed_from = data.draw(st.integers(1, length - 1))
    model = randomised(Transformer(GROUPED), seed)
    tokens = torch.randint(60, (2, length), generator=torch.Generator().manual_seed(seed))
    others = tokens.clone()
    others[:, changed_from:] = (others[:, changed_from:] + 1) % 60
    with torch.no_grad():
        before, after = model(tokens), model(others)
    torch.testing.assert_close(after[:, :changed_from], before[:, :changed_from], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(after[:, changed_from], before[:, changed_from], atol=1e-3)


@CALM
@given(seed=st.integers(0, 99), batch=st.integers(1, 5), length=st.integers(1, 40))
def test_a_sequence_does_not_see_the_others_of_its_batch(seed, batch, length):
    model = randomised(Transformer(GROUPED), seed)
    tokens = torch.randint(60, (batch, length), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        alone = torch.cat([model(sequence[None]) for sequence in tokens])
        torch.testing.assert_close(model(tokens), alone, rtol=1e-4, atol=1e-4)


def test_every_parameter_gets_a_gradient():
    model = randomised(Transformer(GROUPED))
    model(torch.arange(40)[None]).square().mean().backward()
    assert all(p.grad is not None and p.grad.norm() > 0 for p in model.parameters())


def test_the_seed_decides_the_weights_and_init_weights_draws_them():
    torch.manual_seed(3)
    first = Transformer(SIZES["tiny"])
    torch.manual_seed(3)
    second = Transformer(SIZES["tiny"])
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    block = first.blocks[0]
    for weight, std in (
        (first.embedding.weight, 0.02),
        (block.attention.wq.weight, 0.02),
        (block.attention.wo.weight, 0.01),  # 2 layers: 0.02 / √4
        (block.mlp.down.weight, 0.01),
    ):
        assert abs(weight.std().item() / std - 1) < 0.05
    assert (first.norm.weight == 1).all()


def test_a_model_made_without_memory_and_filled_later_is_the_same():
    with torch.device("meta"):
        model = Transformer(GROUPED)
    model.to_empty(device="cpu")
    torch.manual_seed(0)
    model.init_weights()
    tokens = torch.arange(30)[None]
    expected = independent.logits(GROUPED, model.state_dict(), tokens)
    torch.testing.assert_close(model(tokens), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(5,), (1, 41), (1, 2, 3)])
def test_tokens_that_do_not_fit_are_refused(shape):
    with pytest.raises(ValueError, match=r"tokens are .*batch, up to 40"):
        Transformer(GROUPED)(torch.zeros(shape, dtype=torch.int64))


@pytest.mark.parametrize("name", ["plain", "sdpa"])
def test_compiles_as_one_graph(name):
    model = randomised(Transformer(GROUPED, ATTENTIONS[name]))
    tokens = torch.arange(40)[None]
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(tokens), model(tokens), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["plain", "sdpa"])
def test_autocast_multiplies_in_bfloat16_and_keeps_float32_parameters_and_gradients(name):
    model = randomised(Transformer(GROUPED, ATTENTIONS[name]))
    tokens = torch.arange(40)[None]
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(tokens)
    assert logits.dtype == torch.bfloat16
    logits.float().square().mean().backward()
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in model.parameters())
    error = (logits.float() - model(tokens)).norm() / model(tokens).norm()
    assert error < 0.03
