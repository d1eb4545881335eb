"""Compare a step's memory by formula with the transformer's counts and with real tensors."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.measure.peak_memory import peak_memory
from labs_helpers.planner.accounting import STAGES, total
from labs_helpers.planner.memory import MEGABYTE, Buffers, activations, peak, step_memory
from labs_helpers.planner.model_size import Model, llama_like
from labs_helpers.tensor_parallel import ParallelTransformer
from labs_helpers.transformer import SIZES, Transformer, counts
from labs_helpers.transformer.attentions import ATTENTIONS
from labs_helpers.transformer.checkpointing import checkpoint_segments
from labs_helpers.transformer.train import next_token_loss

CALM = settings(derandomize=True, deadline=None, max_examples=40)
WORDY = dataclasses.replace(SIZES["tiny"], vocabulary=2048, layers=3, tied=False)
DEEP = dataclasses.replace(SIZES["tiny"], layers=6)
BF16 = torch.bfloat16


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def sizes(parts):
    return {part.name: part.bytes for part in parts}


def saved(forward, model):
    """Bytes that a forward pass keeps for the backward pass, parameters left out."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage  # held, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        forward()
    return sum(storage.nbytes() for address, storage in kept.items() if address not in own)


@pytest.mark.parametrize("config", [SIZES["1b"], SIZES["small"], WORDY])
def test_on_one_gpu_it_is_the_transformer_s_own_peak(config):
    """Of a step that frees its gradients and whose peak is in the loss."""
    parts = step_memory(Model.of(config), "DDP", 1, "bf16", batch=4, length=512)
    assert peak(parts, gradients_freed=True) == counts.step_peaks(config, 4, 512, 2, "sdpa")["loss"]
    assert peak(parts) == total(parts) == peak(parts, True) + 2 * sum(counts.parameters(config).values())


@pytest.mark.parametrize("stage", STAGES)
def test_a_single_rank_needs_nothing_for_communication(stage):
    assert total(step_memory(Model.of(7e9), stage, 1)) == total(step_memory(Model.of(7e9), "DDP", 1))


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("config", [DEEP, WORDY])
def test_activations_against_a_step_that_was_made(config, checkpoint):
    model = Transformer(config, ATTENTIONS["sdpa"]).to(BF16)
    if checkpoint:
        checkpoint_segments(model, [1] * config.layers)
    tokens = torch.zeros(4, 64, dtype=torch.int64)
    _, found = peak_memory(
        lambda *_: next_token_loss(model(tokens), tokens).backward(), tokens, *model.parameters()
    )  # of activations, and of the gradients that are there by then
    expected = activations(Model.of(config), "bf16", 1, 4, 64, "sdpa", checkpoint).bytes
    gradients = sum(p.nbytes for p in model.parameters())
    assert 0.98 * expected <= found <= expected + gradients
    if not checkpoint:
        assert found == pytest.approx(expected, rel=0.002)


@pytest.mark.parametrize("attention", ["plain", "sdpa"])
@pytest.mark.parametrize("tp", [1, 2, 4])
def test_activations_of_a_tensor_parallel_rank_against_what_autograd_saves(tp, attention):
    model = ParallelTransformer(WORDY, SilentCommunication(0, tp), ATTENTIONS[attention]).to(BF16)
    tokens = torch.zeros(4, 64, dtype=torch.int64)
    found = saved(lambda: model.loss(tokens, tokens), model)
    part = activations(Model.of(WORDY), "bf16", tp, 4, 64, attention)
    assert part.bytes - 2 * 4 * 4 * 64 * WORDY.vocabulary / tp == pytest.approx(found, rel=0.02)


def test_under_autocast_the_formula_is_a_lower_bound_within_a_tenth():
    config = SIZES["tiny"]
    model, tokens = Transformer(config, ATTENTIONS["sdpa"]), torch.zeros(8, 128, dtype=torch.int64)

    def forward():
        with torch.autocast("cpu", BF16):
            next_token_loss(model(tokens), tokens)

    part = activations(Model.of(config), "autocast over float32", 1, 8, 128)
    expected = part.bytes - 2 * 4 * 8 * 128 * config.vocabulary
    assert 0.9 < expected / saved(forward, model) <= 1


@CALM
@given(stage=st.sampled_from(list(STAGES)), n=st.integers(2, 512), gpus=st.sampled_from([1, 2, 4, 8]))
def test_memory_is_a_sum_and_falls_with_more_ranks(stage, n, gpus):
    model = Model.of(SIZES["1b"])
    parts = step_memory(model, stage, n, tp=gpus)
    assert total(parts) == pytest.approx(sum(sizes(parts).values())) and len(sizes(parts)) == len(parts)
    assert all(part.bytes >= 0 and part.formula for part in parts)
    assert total(step_memory(model, stage, n + 1, tp=gpus)) <= total(parts)
    assert total(step_memory(model, stage, n, tp=2 * gpus)) < total(parts)


def test_buckets_and_gathered_blocks():
    model = Model.of(SIZES["1b"])
    count, block = model.parameters, model.per_block()
    assert block == (268_435_456 + 553_648_128) / 16 + 2 * 2048
    outside = count - 16 * block
    assert outside == 2 * 32_000 * 2048 + 2048
    found = {stage: sizes(step_memory(model, stage, 4, "bf16")) for stage in STAGES}
    assert "buckets" not in found["DDP"] and "buckets" not in found["ZeRO-1"]
    assert found["ZeRO-2"]["buckets"] == 2 * 25 * MEGABYTE
    assert found["ZeRO-3"]["buckets"] == found["SHARD_GRAD_OP"]["buckets"] == 2 * 2 * block
    assert found["SHARD_GRAD_OP"]["gathered"] == 2 * count
    assert found["ZeRO-3"]["gathered"] == 2 * (2 * block + outside)
    far = sizes(step_memory(model, "ZeRO-3", 4, "bf16", buffers=Buffers(prefetched=100)))
    assert far["gathered"] == pytest.approx(2 * count)
    copied = sizes(step_memory(model, "DDP", 4, "bf16", buffers=Buffers(copies=True)))
    assert copied["buckets"] == copied["gradients"]


def test_whole_gradients_in_a_step():
    whole = sizes(step_memory(Model.of(7e9), "ZeRO-3", 8, whole_gradients=True))
    assert whole["gradients"] == 14e9


@pytest.mark.parametrize("bad", [{"bucket_bytes": 0}, {"prefetched": -1}])
def test_buffers_that_cannot_be(bad):
    with pytest.raises(ValueError, match="the least are 1 byte and 0 blocks"):
        Buffers(**bad)


@pytest.mark.parametrize("size", [2e7, 124e6, 1e9, 1.5e9, 7e9, 13e9, 70e9, 175e9, 1e12])
def test_an_assumed_shape_is_near_and_can_be_split(size):
    model = Model.of(size)
    assert model.assumed and model.per_rank() == pytest.approx(size) and 0.95 < model.scale < 1.05
    blocks = model.shape.layers * model.per_block()
    outside = model.scale * (2 * model.shape.vocabulary + 1) * model.shape.width
    assert blocks + outside == pytest.approx(size)
    heads = model.shape.heads
    assert heads in (1, 2, 4) or heads % 8 == 0


def test_7_and_13_and_175_billion_parameters_have_the_known_shapes():
    known = {6.74e9: (32, 4096, 11008), 13e9: (40, 5120, 13824), 175e9: (96, 12288, 32768)}
    for size, shape in known.items():
        found = llama_like(size)
        assert (found.layers, found.width, found.hidden) == shape


def test_a_given_shape_is_taken_as_it_is():
    model = Model.of(SIZES["1b"])
    assert (model.parameters, model.scale, model.assumed) == (953_223_168, 1, False)
    assert model.flops_per_token(1024, False) == counts.flops_per_token(SIZES["1b"], 1024).step
    assert model.flops_per_token(1024, False, recomputed=True) > 1.3 * model.flops_per_token(1024, False)
    assert "16 layers, width 2048" in str(model) and "assumed" not in str(model)
    with pytest.raises(ValueError, match="parameters is 1e"):
        Model.of(1e6)
    with pytest.raises(ValueError, match="parameters is nan"):
        Model.of(float("nan"))
