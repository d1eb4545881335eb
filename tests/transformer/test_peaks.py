"""Compare a step's peak by formula with real steps: peak_memory's tensors, and the profiler's allocations."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
import torch

from labs_helpers.measure.peak_memory import peak_memory
from labs_helpers.transformer import SIZES, counts
from labs_helpers.transformer.setups import OPTIMIZERS, Setup
from labs_helpers.transformer.training_step import Training
from tests.planted import planted

TINY = dataclasses.replace(SIZES["tiny"], context=512)
MANY_WORDS = dataclasses.replace(TINY, vocabulary=4096, tied=False)
CONFIGS = {
    "tiny": TINY,
    "vocabulary, untied": MANY_WORDS,
    "vocabulary, tied": dataclasses.replace(MANY_WORDS, tied=True),
    "deep": dataclasses.replace(TINY, layers=6),
    "wide MLP": dataclasses.replace(TINY, hidden=2048),
    "one layer, 16 heads": dataclasses.replace(TINY, layers=1, heads=16),
}
FLOAT32, BFLOAT16 = torch.float32, torch.bfloat16


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # several wait for each other where tests run in parallel
    yield
    torch.set_num_threads(before)


def made(config, batch, length, dtype=FLOAT32, **setup):
    """(training, its parameters, moments and tokens), a step of which has been made."""
    precision = {FLOAT32: "fp32", BFLOAT16: "bf16"}[dtype]
    training = Training(config, Setup(precision=precision, **setup), batch, length, device="cpu")
    training.step()
    moments = [t for state in training.optimizer.state.values() for t in state.values()]
    return training, [*training.model.parameters(), *moments, *itertools.chain(*training.batches)]


def measured(config, batch, length, dtype=FLOAT32, **setup):
    training, states = made(config, batch, length, dtype, **setup)
    _, peak = peak_memory(lambda *_: training.step(), *states)
    return peak + sum(t.nbytes for t in states)


def agree(config, batch, length, dtype=FLOAT32, step_peak=counts.step_peak, within=0.04, **more):
    peak = measured(config, batch, length, dtype, **more)
    assert step_peak(config, batch, length, dtype.itemsize, **more) == pytest.approx(peak, rel=within)
    return peak


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("dtype", [FLOAT32, BFLOAT16], ids=str)
@pytest.mark.parametrize("batch, length", [(1, 8), (3, 96), (1, 384)])
def test_peak(config, batch, length, dtype):
    agree(config, batch, length, dtype)


@pytest.mark.parametrize("attention", ["plain", "sdpa"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("batch, length", [(1, 8), (2, 200)])
def test_attentions_and_optimizers(attention, optimizer, batch, length):
    for config in (TINY, CONFIGS["vocabulary, tied"]):
        agree(config, batch, length, attention=attention, optimizer=optimizer)


@pytest.mark.parametrize(
    "point, config, batch, length",
    [
        ("loss", MANY_WORDS, 4, 64),
        ("mlp", CONFIGS["wide MLP"], 4, 64),
        ("attention", TINY, 1, 512),
        ("gradients", CONFIGS["vocabulary, tied"], 1, 8),
        ("update", TINY, 1, 8),
    ],
)
def test_each_point_is_the_peak_of_some_step(point, config, batch, length, tmp_path):
    optimizer = "fused" if point == "gradients" else "foreach"
    peaks = counts.step_peaks(config, batch, length, optimizer=optimizer)
    assert max(peaks, key=peaks.get) == point
    assert _allocated(tmp_path, config, batch, length, optimizer=optimizer) == pytest.approx(peaks[point], rel=0.02)


def _allocated(folder, *setup, **more):
    """The peak from the CPU allocator's own record."""
    training, states = made(*setup, **more)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True
    ) as profile:
        training.step()
    profile.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    changes = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]")
    return sum(t.nbytes for t in states) + max(itertools.accumulate(size for _, size in changes))


@pytest.mark.parametrize("config, point", [(MANY_WORDS, "loss"), (TINY, "attention")])
@pytest.mark.parametrize("dtype", [FLOAT32, BFLOAT16], ids=str)
def test_the_square_of_the_length(config, point, dtype):
    lengths = (320, 416, 512)
    formulas = [counts.step_peaks(config, 1, length, dtype.itemsize)[point] for length in lengths]
    found = np.polyfit(lengths, [measured(config, 1, length, dtype) for length in lengths], 2)
    assert found[0] == pytest.approx(np.polyfit(lengths, formulas, 2)[0], rel=0.03)


def test_without_scores_memory_is_linear_in_the_length():
    short, middle, long = (counts.step_peak(SIZES["small"], 8, n, 2, "flash") for n in (1024, 2048, 3072))
    assert long - middle == middle - short


def test_another_setup_is_refused():
    with pytest.raises(ValueError, match="attention is 'linear'; it may be 'plain', 'sdpa', 'flash'"):
        counts.step_peak(TINY, 1, 8, attention="linear")
    with pytest.raises(ValueError, match="optimizer is 'sgd'; it may be 'for-loop'"):
        counts.step_peak(TINY, 1, 8, optimizer="sgd")


MISTAKES = {  # where they show: config, batch, length, dtype
    "one gradient of the logits": ("+ 2 * logits", "+ logits", MANY_WORDS, 3, 96, FLOAT32),
    "gradients from the start": ('"loss": itemsize * 3 *', '"loss": itemsize * 4 *', MANY_WORDS, 3, 32, FLOAT32),
    "scores' gradients rounded": ("2 * 4 * scores", "2 * 2 * scores", TINY, 1, 512, BFLOAT16),
    "no gradients of the scores": ("+ 2 * 4 * scores", "", TINY, 1, 512, FLOAT32),
    "the log-softmax still there": (' - saved["log-softmax of the logits"] - last', "", TINY, 1, 512, FLOAT32),
    "tied gradients added in place": ("(2 * head if", "(head if", CONFIGS["vocabulary, tied"], 1, 8, FLOAT32, "fused"),
    "nothing for foreach": ('"foreach": count', '"foreach": 0', TINY, 1, 8, FLOAT32),
    "the MLP's gradients": ("2 * hidden) + behind", "0 * hidden) + behind", CONFIGS["wide MLP"], 4, 64, FLOAT32),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake, tmp_path):
    old, new, *setup = MISTAKES[mistake]
    optimizer = setup.pop() if setup[-1] == "fused" else "foreach"
    with pytest.raises(AssertionError):
        agree(*setup, optimizer=optimizer, step_peak=planted(counts.step_peak, tmp_path, (old, new)))
