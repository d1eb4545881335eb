"""Test checkpointed segments: the same gradients bit for bit, and the FLOPs and bytes that the formulas predict."""

import dataclasses
import re

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import set_checkpoint_early_stop
from torch.utils.flop_counter import FlopCounterMode

from labs_helpers.measure.peak_memory import peak_memory
from labs_helpers.transformer import Transformer, counts
from labs_helpers.transformer import model as model_module
from labs_helpers.transformer.attentions import ATTENTIONS
from labs_helpers.transformer.checkpointing import checkpoint_segments, equal_segments, run_segments
from labs_helpers.transformer.train import next_token_loss
from tests.planted import planted
from tests.transformer.independent import GROUPED, randomised

DEEP = dataclasses.replace(GROUPED, layers=5, width=96)  # head dim 16: the kernels' least
SIZES = ([5], [1, 4], [2, 2, 1], [1] * 5)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(sizes, attention="plain", config=DEEP):
    model = randomised(Transformer(config, ATTENTIONS[attention]))
    checkpoint_segments(model, sizes)
    return model


def batch_of(length=20, batch=2):
    return torch.randint(60, (2, batch, length), generator=torch.Generator().manual_seed(1)).unbind()


def gradients(model, length=20, loss_of=None):
    x, y = batch_of(length)
    loss = loss_of(x, y) if loss_of else next_token_loss(model(x), y)
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())
    return [loss.detach(), *(p.grad for p in model.parameters())]


def same_gradients(sizes, attention="plain", config=DEEP, length=20):
    expected = gradients(made([], attention, config), length)
    found = gradients(made(sizes, attention, config), length)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("attention", ["plain", "sdpa"])
def test_gradients_are_those_of_no_checkpoints_bit_for_bit(attention, sizes):
    same_gradients(sizes, attention)


def test_gradients_with_the_courses_attention():
    same_gradients([1, 1], "flash", dataclasses.replace(DEEP, layers=2, heads=2, kv_heads=1, width=32), length=8)


MISTAKES = {
    "every segment begins at the first block": ("start += size", "start += 0"),
    "the segment that comes last is computed again": (", segment: Sequence[Any] = segment)", ")"),
    "blocks backwards": ("for block in segment:", "for block in reversed(segment):"),
    "input lost": ("x = checkpoint(run, x,", "x = checkpoint(run, x.detach(),"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake, tmp_path, monkeypatch):
    monkeypatch.setattr(model_module, "run_segments", planted(run_segments, tmp_path, MISTAKES[mistake]))
    with pytest.raises((AssertionError, torch.utils.checkpoint.CheckpointError)):
        same_gradients([2, 2, 1])


def test_names_of_parameters_stay_and_no_sizes_end_it():
    plain, model = made([]), made([2, 3])
    assert list(model.state_dict()) == list(plain.state_dict())
    assert saved_bytes(model) < saved_bytes(plain)
    checkpoint_segments(model, [])
    assert saved_bytes(model) == saved_bytes(plain)


@pytest.mark.parametrize("sizes", [[2, 3], [5]], ids=str)
@pytest.mark.parametrize("whole", [True, False], ids=["whole segments", "up to the last tensor wanted"])
def test_flops_computed_again(sizes, whole):
    model, (x, y) = made(sizes), batch_of()
    with set_checkpoint_early_stop(not whole):
        loss = next_token_loss(model(x), y)
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    flops = counts.flops_per_token(DEEP, 20)
    left_out = 0 if whole else len(sizes) * 2 * DEEP.hidden * DEEP.width  # each segment's last product
    assert backward.get_total_flops() == (flops.backward + flops.recomputation - left_out) * x.numel()


def saved_bytes(model, length=20):
    """Bytes of the storages that a forward pass keeps, parameters left out."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()  # held, so that no address is used twice
        return tensor

    x, y = batch_of(length)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = next_token_loss(model(x), y)
    return sum(storage.nbytes() for address, storage in kept.items() if address not in own) + 0 * loss.numel()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_of_each_segment_only_the_input_is_kept(sizes, dtype):
    one, two = (
        sum(counts.saved_activations(dataclasses.replace(DEEP, layers=n), 2, 20, dtype.itemsize).values())
        for n in (1, 2)
    )
    outside = one - (two - one)  # all that is no layer's
    expected = outside + len(sizes) * 2 * 20 * DEEP.width * dtype.itemsize
    assert abs(saved_bytes(made(sizes).to(dtype)) / expected - 1) < 0.001


def test_the_peak_falls_by_the_layers_that_are_not_there_at_once():
    config = dataclasses.replace(DEEP, layers=9)

    def peak(segments):
        model, (x, y) = made(equal_segments(9, segments), config=config), batch_of(40, batch=8)
        return peak_memory(
            lambda x, y: torch.autograd.grad(next_token_loss(model(x), y), model.embedding.weight), x, y
        )[1]

    one, two = (sum(counts.saved_activations(dataclasses.replace(config, layers=n), 8, 40).values()) for n in (1, 2))
    inside, kept = two - one, 8 * 40 * config.width * 4
    peaks = {segments: peak(segments) for segments in (1, 3, 9)}
    assert peaks[1] - peaks[3] == pytest.approx(6 * inside - 2 * kept, rel=0.02)
    assert peaks[3] - peaks[9] == pytest.approx(2 * inside - 6 * kept, rel=0.02)


def test_it_compiles_as_one_graph():
    config = dataclasses.replace(DEEP, layers=3)
    model = made([1, 2], "sdpa", config)
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda x, y: next_token_loss(model(x), y), fullgraph=True, dynamic=False, backend="aot_eager"
    )
    expected = gradients(made([], "sdpa", config))
    for a, b in zip(gradients(model, loss_of=compiled), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_the_second_pass_is_under_autocast_too():
    def step(sizes):
        model, (x, y) = made(sizes), batch_of()
        with torch.autocast("cpu", torch.bfloat16):
            loss = next_token_loss(model(x), y)
        loss.backward()
        return [p.grad for p in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(step([2, 3]), step([]), strict=True))


def test_equal_segments_are_numpys():
    for layers in range(1, 20):
        for segments in range(1, layers + 1):
            expected = [len(part) for part in np.array_split(range(layers), segments)]
            assert equal_segments(layers, segments) == expected
        assert equal_segments(layers, 0) == []


@pytest.mark.parametrize("segments", [-1, 6])
def test_more_segments_than_layers_are_refused(segments):
    with pytest.raises(ValueError, match=f"segments is {segments}; 5 layers make 0 to 5"):
        equal_segments(5, segments)


@pytest.mark.parametrize(
    "sizes, message",
    [
        ([2, 2], "the segments [2, 2] add up to 4, and the model has 5 layers"),
        ([5, 5], "add up to 10"),
        ([0, 5], "a segment's size is 0, not an integer of 1 or more"),
        ([-1, 6], "size is -1"),
        ([2.5, 2.5], "size is 2.5"),
        ([True] * 5, "size is True"),
    ],
    ids=str,
)
def test_sizes_that_do_not_fit_are_refused(sizes, message):
    model = made([5])
    with pytest.raises(ValueError, match=re.escape(message)):
        checkpoint_segments(model, sizes)
    assert model.segments == [5]
