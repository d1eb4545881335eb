"""Test the sequences of real data: the meaning of tokens, and that a step's batch never depends on the caller."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from labs_helpers.training import datasets
from labs_helpers.training.places import on_rank_0
from labs_helpers.training.settings import Refused
from labs_helpers.transformer import text as text_module
from labs_helpers.transformer.text import text


class Alone:
    """A communicator of one rank."""

    def Get_rank(self):
        return 0

    def bcast(self, value):
        return value


class Second(Alone):
    """The second rank of two: `told` is what the first says."""

    def __init__(self, told):
        self.told = told

    def Get_rank(self):
        return 1

    def bcast(self, value):
        return self.told


def load(name, batch=5, length=64, seed=3):
    return datasets.load(Alone(), name, batch, length, seed)


@pytest.mark.parametrize("name", ["digits", "text"])
def test_a_batch_is_a_function_of_seed_and_step(name):
    first, again, other = load(name), load(name), load(name, seed=4)
    later = again.batch(7)
    for step in (0, 1, 7):
        tokens, targets = first.batch(step)
        assert tokens.shape == targets.shape == (5, 64) and tokens.dtype == targets.dtype == np.int64
        assert np.array_equal(tokens[:, 1:], targets[:, :-1])
        assert not np.array_equal(tokens, other.batch(step)[0])
    assert np.array_equal(later[0], first.batch(7)[0]) and not np.array_equal(later[0], first.batch(1)[0])
    assert first.fingerprint == other.fingerprint


def test_digits_are_pixels_and_then_the_label():
    sequences, digits = datasets.digit_sequences(), load_digits()
    assert sequences.shape == (1797, 65)
    assert np.array_equal(sequences[:, :64] // 17, np.tile(np.arange(64), (1797, 1)))
    assert np.array_equal(sequences[:, :64] % 17, digits.images.reshape(1797, 64))
    assert np.array_equal(sequences[:, 64] - 17 * 64, digits.target)
    data = load("digits")
    assert data.labelled and len(data.train) == 1509 and len(data.validation[0]) == 288
    assert np.array_equal(data.validation[1][:, -1], sequences[-288:, 64])


def test_text_is_lab_01s():
    data = load("text", length=16)
    train = text("train").numpy()
    assert not data.labelled and np.array_equal(data.train, train)
    whole = train.tobytes()
    for tokens, targets in zip(*data.batch(0), strict=True):
        assert bytes(np.append(tokens, targets[-1]).astype(np.uint8)) in whole
    assert data.validation[0].shape == (64, 16)


def test_sequences_longer_than_the_text_are_refused_before_they_are_made():
    with pytest.raises(Refused, match=r"length is 2,000,000, but has to be less than the [\d,]+ bytes of the text"):
        load("text", length=2_000_000)


def test_a_standard_library_without_sources_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(text_module.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    monkeypatch.setattr(text_module, "text", text_module.text.__wrapped__)
    with pytest.raises(Refused, match=f"no .py files of the standard library under {tmp_path}"):
        load("text")


@pytest.mark.parametrize("error, said", [
    (OSError(5, "Input/output error", "/data"), "/data: Input/output error"),
    (MemoryError("Unable to allocate 9 GiB"), "not enough memory: Unable to allocate 9 GiB"),
])  # fmt: skip
def test_every_rank_hears_of_an_error_that_rank_0_has_with_files_or_memory(error, said):
    def fails():
        raise error

    told = []
    first = Alone()
    first.bcast = lambda value: told.append(value) or value
    for comm in (first, Second(told)):
        if comm is not first:
            comm.told = told[0]
        with pytest.raises(Refused, match=said):
            on_rank_0(comm, fails)
