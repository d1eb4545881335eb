"""Test the decode loop with one launch per product, for dense weights and for weights in every format."""

import dataclasses

import pytest
import torch

from labs_helpers.measure.machine import this_machine
from labs_helpers.quantization.decode_operations import few_rows_operations
from labs_helpers.quantization.decoding_study import FORMATS, Weights, requantised
from labs_helpers.quantization.weights import Int4Weight, PairedInt4Weight
from labs_helpers.transformer.decode_operations import PLAIN
from labs_helpers.transformer.decode_step import DecodeStep, joined
from labs_helpers.transformer.decoding import DecodeLoop
from labs_helpers.transformer.kv_cache import KVCache
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.sampling import Sampling
from tests.transformer.independent import GROUPED, randomised
from tests.transformer.test_decoding import prompts

HERE = this_machine()
DEEP = dataclasses.replace(GROUPED, width=128, heads=8, kv_heads=2, hidden=256)


def model_of(dtype=torch.float32):
    return randomised(Transformer(DEEP)).to(HERE.device, dtype)


def loop_of(model, operations, **options):
    return DecodeLoop(model, KVCache.for_model(model, 3, 40), operations=operations, **options)


def test_it_generates_the_same_tokens_as_plain_pytorch():
    model, how = model_of(), Sampling(0.9, 6, seed=2)
    found, expected = (
        loop_of(model, operations, how=how, graph=False).generate(prompts(), 6)
        for operations in (few_rows_operations(), PLAIN)
    )
    assert torch.equal(found, expected)


@pytest.mark.parametrize("name", FORMATS)
def test_logits_of_quantised_weights_agree_with_their_dequantised_ones(name):
    model = model_of()
    requantised(FORMATS[name], model)
    found = []
    for operations in (few_rows_operations(), PLAIN):
        cache = KVCache.for_model(model, 3, 40)
        step = DecodeStep(model, cache, operations)
        with torch.no_grad():
            for position in range(3):
                cache.lengths.fill_(position)
                logits = step(torch.tensor([1, 2, 3], device=HERE.device) + position)
        found.append(logits)
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-3)


@pytest.mark.skipif(HERE.interpreted, reason="needs a GPU")
def test_a_graph_generates_the_same_tokens():
    model = model_of(torch.float16)
    eager, graph = (
        loop_of(model, few_rows_operations(), how=Sampling(0.8, 5, seed=3), graph=graph) for graph in (False, True)
    )
    for lengths in ((5, 9, 1), (20, 2, 11)):
        assert torch.equal(graph.generate(prompts(lengths), 15), eager.generate(prompts(lengths), 15))


def test_int4_weights_are_joined_by_outputs_even_if_they_have_as_many_groups():
    layers = [Weights(PairedInt4Weight.of(Int4Weight.quantize(torch.randn(4, 128), group=32))) for _ in range(3)]
    whole = joined(layers)
    assert torch.equal(whole.dequantize(), torch.cat([layer.weight.dequantize() for layer in layers]))
