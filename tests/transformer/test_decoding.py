"""Test that the decode loop generates what recomputation without a cache generates, and what it says otherwise."""

import dataclasses

import pytest
import torch

from labs_helpers.measure.machine import this_machine
from labs_helpers.transformer import SIZES
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.compiled_decoding import CompiledStep
from labs_helpers.transformer.decode_operations import KERNELS, PLAIN, operations_for
from labs_helpers.transformer.decode_plain import attend_plain
from labs_helpers.transformer.decode_step import DecodeStep, joined
from labs_helpers.transformer.decoding import DecodeLoop
from labs_helpers.transformer.kv_cache import KVCache, filled
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.sampling import Sampling, draw, uniform
from tests.planted import planted
from tests.transformer.independent import GROUPED, randomised

HERE = this_machine()
WIDE = dataclasses.replace(GROUPED, width=96)  # head dim 16, the kernels' smallest
LENGTHS = (5, 9, 1)
CASES = {
    "float64": (torch.float64, PLAIN),
    "float32": (torch.float32, PLAIN),
    "float32, kernels": (torch.float32, KERNELS),
}
gpu = pytest.mark.skipif(HERE.interpreted, reason="needs a GPU")


def model_of(dtype, **changes):
    return randomised(Transformer(dataclasses.replace(WIDE, **changes))).to(HERE.device, dtype)


def prompts(lengths=LENGTHS, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(60, (length,), generator=generator).to(HERE.device) for length in lengths]


def loop_of(model, batch=3, capacity=40, **options):
    return DecodeLoop(model, KVCache.for_model(model, batch, capacity), graph=False, **options)


@torch.no_grad()
def recomputed(model, given, count, how=None):
    """Generate with a forward pass over all tokens so far for each new one; one sequence at a time."""
    rows = []
    for row, tokens in enumerate(given):
        for _ in range(count):
            logits = model(tokens[None])[:, -1]
            u = torch.tensor([uniform(how.seed, row, len(tokens))], device=tokens.device) if how else None
            token = draw(logits, u, how) if how else logits.argmax(-1)
            tokens = torch.cat([tokens, token])
        rows.append(tokens[-count:])
    return torch.stack(rows)


@pytest.mark.parametrize("changes", [{}, {"kv_heads": 6}, {"kv_heads": 1}, {"tied": True}], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_prompts_of_several_lengths_go_on_as_without_a_cache(case, changes):
    dtype, operations = CASES[case]
    model = model_of(dtype, **changes)
    expected = recomputed(model, prompts(), 12)
    assert torch.equal(loop_of(model, operations=operations).generate(prompts(), 12), expected)


@pytest.mark.parametrize("how", [Sampling(0.8, seed=7), Sampling(1.5, 5, seed=-1)], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_sampled_tokens_are_those_of_recomputation_with_the_same_numbers(case, how):
    dtype, operations = CASES[case]
    model = model_of(dtype)
    assert torch.equal(
        loop_of(model, how=how, operations=operations).generate(prompts(), 12), recomputed(model, prompts(), 12, how)
    )


def logits_by_step(model, tokens, operations=PLAIN, make=DecodeStep):
    """The logits of every position of tokens (B, L), decoded one by one from an empty cache."""
    cache = KVCache.for_model(model, *tokens.shape)
    step, found = make(model, cache, operations), []
    with torch.no_grad():
        for position in range(tokens.shape[1]):
            cache.lengths.fill_(position)
            found.append(step(tokens[:, position]))
    return torch.stack(found, 1)


def test_logits_agree_in_float64_and_float32():
    tokens = torch.stack(prompts((20, 20)))
    for dtype, operations, bound in (
        (torch.float64, PLAIN, 1e-6),
        (torch.float32, PLAIN, 1e-4),
        (torch.float32, KERNELS, 1e-4),
    ):
        model = model_of(dtype)
        found = logits_by_step(model, tokens, operations)
        # float64 agrees to float32's rounding, in which RMSNorm and the softmax of `plain` compute.
        torch.testing.assert_close(found, model(tokens).detach(), rtol=bound, atol=bound)


def test_bfloat16_stays_within_the_sum_of_its_roundings():
    torch.manual_seed(0)
    config = dataclasses.replace(SIZES["tiny"], kv_heads=2)
    model = Transformer(config).to(HERE.device, torch.bfloat16)
    tokens = torch.stack(prompts((60, 60)))
    exact = Transformer(config).to(HERE.device, torch.float64)
    exact.load_state_dict({name: value.double() for name, value in model.state_dict().items()})
    expected = exact(tokens).detach()

    def off(found):
        return float((found.double() - expected).norm() / expected.norm())

    # Norm 2, q/k/v, rotation, P, o, wo, sum; norm 2, gate and up, silu, product, down, sum: 14 roundings per layer of
    # at most 2⁻⁸ each, and 3 before the logits, none of which a branch of this model enlarges.
    found = off(logits_by_step(model, tokens))
    assert found < (14 * config.layers + 3) * 2.0**-8
    assert found < 2 * off(model(tokens).detach())  # which rounds at the same places


MISTAKES = {
    "one position too far": ("<= at[:, None]", "<= at[:, None] + 1"),
    "without the new position": ("<= at[:, None]", "< at[:, None]"),
    "stored one position late": (
        "k[sequence, :, at], v[sequence, :, at]",
        "k[sequence, :, at - 1], v[sequence, :, at - 1]",
    ),
    "angle of the first sequence": ("sin[at][:, None]", "sin[at[:1]][:, None]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_attention_shows(mistake, tmp_path):
    wrong = planted(attend_plain, tmp_path, MISTAKES[mistake])
    model = model_of(torch.float64)
    operations = dataclasses.replace(PLAIN, attention=lambda cache, heads: wrong)
    found = loop_of(model, operations=operations).generate(prompts(), 12)
    assert not torch.equal(found, recomputed(model, prompts(), 12))


def test_a_loop_starts_again_and_goes_on_step_by_step():
    model = model_of(torch.float64)
    loop = loop_of(model)
    first = loop.generate(prompts(), 8)
    loop.generate(prompts((20, 3, 15), seed=5), 4)
    assert torch.equal(loop.generate(prompts(), 5), first[:, :5])
    for _ in range(3):
        loop.step()
    assert loop.cache.lengths.tolist() == [length + 7 for length in LENGTHS]
    for row, length in enumerate(LENGTHS):
        assert torch.equal(loop.tokens[row, length : length + 8], first[row])


def test_what_lies_behind_the_lengths_is_not_read():
    model = model_of(torch.float32)
    for operations in (PLAIN, KERNELS):
        loop = loop_of(model, operations=operations)
        expected = loop.generate(prompts(), 6)
        for cache in (loop.cache.k, loop.cache.v):
            cache.fill_(1e4)
        assert torch.equal(loop.generate(prompts(), 6), expected)


def test_filling_the_cache_leaves_the_model_as_it_was():
    model = model_of(torch.float32)
    cache = KVCache.for_model(model, 1, 10)
    before = [block.attention.attention for block in model.blocks]
    with pytest.raises(ValueError, match="tokens are"), filled(cache, model):
        model(torch.zeros(1, 41, dtype=torch.int64, device=HERE.device))
    assert [block.attention.attention for block in model.blocks] == before


def test_the_weights_of_q_k_and_v_are_joined_once_and_without_a_copy():
    model = model_of(torch.float32)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    one, two = loop_of(model), loop_of(model)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    for first, second, block in zip(one.step_logits.qkv, two.step_logits.qkv, model.blocks, strict=True):
        parts = [block.attention.wq.weight, block.attention.wk.weight, block.attention.wv.weight]
        assert first.data_ptr() == second.data_ptr() == parts[0].data_ptr() and len(first) == sum(map(len, parts))
        assert {part.untyped_storage().data_ptr() for part in parts} == {first.untyped_storage().data_ptr()}


@dataclasses.dataclass(frozen=True)
class Halves:
    """A quantised weight: integers of half steps."""

    q: torch.Tensor
    scale: torch.Tensor

    @property
    def shape(self):
        return self.q.shape

    def dequantize(self, dtype):
        return self.q.to(dtype) * self.scale[:, None].to(dtype)


class Quantised(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight.dequantize(x.dtype))


def test_weights_may_be_objects_that_dequantise():
    model, dense = model_of(torch.float64), model_of(torch.float64)
    for own, other in zip(model.blocks, dense.blocks, strict=True):
        for part, names in (("attention", ("wq", "wk", "wv", "wo")), ("mlp", ("gate", "up", "down"))):
            for name in names:
                weight = getattr(getattr(own, part), name).weight.detach()
                scale = weight.abs().amax(1) / 127
                halves = Halves((weight / scale[:, None]).round().to(torch.int8), scale)
                setattr(getattr(own, part), name, Quantised(halves))
                getattr(getattr(other, part), name).weight.data = halves.dequantize(weight.dtype)
    assert torch.equal(loop_of(model).generate(prompts(), 10), loop_of(dense).generate(prompts(), 10))
    attention = model.blocks[0].attention
    whole = joined([attention.wq, attention.wk, attention.wv])
    assert whole.q.untyped_storage().data_ptr() == attention.wv.weight.q.untyped_storage().data_ptr()
    attention.wk = torch.nn.Linear(96, 32, bias=False)
    with pytest.raises(TypeError, match="q, k and v are Halves, Parameter, Halves"):
        joined([attention.wq, attention.wk, attention.wv])


def test_the_compiled_peer_computes_the_same_logits():
    model = model_of(torch.float32)
    tokens = torch.stack(prompts((4, 4)))
    found = logits_by_step(model, tokens, make=lambda model, cache, operations: CompiledStep(model, cache))
    torch.testing.assert_close(found, model(tokens).detach(), rtol=1e-4, atol=1e-4)


def test_what_does_not_fit_is_named():
    model = model_of(torch.float32)
    for wrong, words in (
        ((0, 10), "batch is 0"),
        ((1, 41), "capacity is 41, and .* 1 to 40"),
        ((1, 0), "capacity is 0"),
    ):
        with pytest.raises(ValueError, match=words):
            KVCache.for_model(model, *wrong)
    loop = loop_of(model, batch=2, capacity=10)
    good = prompts((5, 3))
    for wrong, count, error, words in (
        (good[:1], 1, ValueError, "1 prompts, .* a batch of 2"),
        (good, 0, ValueError, "count is 0"),
        (good, 7, ValueError, "prompt of 5 tokens and 7 more take 11 positions"),
        ([good[0], prompts((11,))[0]], 1, ValueError, "prompt 1 has 11 tokens, and the cache 10 positions"),
        ([good[0], good[1][:0]], 1, ValueError, r"prompt 1 is \(0,\)"),
        ([good[0], good[1].int()], 1, TypeError, "prompt 1 is torch.int32"),
        ([[1, 2], good[1]], 1, TypeError, "prompt 0 is list"),
        ([good[0], good[1] * 0 + 60], 1, ValueError, "token 60, and the vocabulary 0 to 59"),
        ([good[0], good[1] * 0 - 1], 1, ValueError, "token -1"),
    ):
        with pytest.raises(error, match=words):
            loop.generate(wrong, count)
    assert loop.generate(good, 6).shape == (2, 6)  # the last token takes no position
    with pytest.raises(ValueError, match="fills all 10 positions"):
        loop.step()
    if HERE.interpreted:
        with pytest.raises(ValueError, match="graph is True, which needs a GPU"):
            DecodeLoop(model, loop.cache, graph=True)


@gpu
@pytest.mark.parametrize("how", [Sampling(), Sampling(0.8, 5, seed=3)], ids=str)
def test_a_graph_generates_the_same_tokens(how):
    model = Transformer(dataclasses.replace(WIDE, width=192), sdpa).to(HERE.device, torch.float16)
    assert operations_for(KVCache.for_model(model, 3, 40)) is KERNELS
    eager, graph = (DecodeLoop(model, KVCache.for_model(model, 3, 40), how, graph=graph) for graph in (False, True))
    for lengths in (LENGTHS, (20, 2, 11)):
        expected = eager.generate(prompts(lengths), 15)
        assert torch.equal(graph.generate(prompts(lengths), 15), expected)
