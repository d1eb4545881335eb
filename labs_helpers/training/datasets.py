"""Real data that every machine has, as sequences of tokens: a batch is a function of the step, whatever the layout.

digits: scikit-learn's 1,797 handwritten digits of 8 × 8 pixels, each a sequence of 64 pixels, row by row, and then the
label. A token says which pixel it is and how grey, 17 · pixel + grey, and is predicted from those before it; so the
last prediction is the digit. (With tokens that say only how grey, the model first has to find out where it is. That is
slow, and meanwhile a rounding error grows by five orders of magnitude: no two layouts would have the same loss curve.)
The last 288 digits are for validation. text: bytes of Python's standard library, see `transformer.text`.
"""

from __future__ import annotations

import functools
import zlib
from typing import Any, Protocol

import numpy as np

from labs_helpers.training.places import on_rank_0
from labs_helpers.training.settings import DIGITS_LENGTH, GREYS, Refused

Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]  # tokens, and for each the one to predict; (sequences, length) of int64

VALIDATION_DIGITS = 288
VALIDATION_WINDOWS = 64


class Data(Protocol):
    """fingerprint: of all training data. labelled: whether the last target of a sequence is a class of its own."""

    fingerprint: int
    labelled: bool
    validation: Pair

    def batch(self, step: int) -> Pair:
        """The step's sequences for all ranks together."""
        ...


def load(comm: Any, name: str, batch: int, length: int, seed: int) -> Data:
    """The data of `settings.VOCABULARY` by name; `batch` sequences per step, of `length` tokens. Called by every rank;
    rank 0 alone reads files, and imports scikit-learn, which takes a second."""
    if name == "text":
        return Text(*on_rank_0(comm, lambda: text_and_windows(length)), batch, length, seed)
    return Digits(on_rank_0(comm, digit_sequences), batch, seed)


class Digits:
    """Sequences are drawn in each step from the first 1,509 digits."""

    labelled = True

    def __init__(self, sequences: Array, batch: int, seed: int) -> None:
        self.train, held_out = sequences[:-VALIDATION_DIGITS], sequences[-VALIDATION_DIGITS:]
        self.size, self.seed = batch, seed
        self.fingerprint = zlib.crc32(self.train.tobytes())
        self.validation = shifted(held_out)

    def batch(self, step: int) -> Pair:
        chosen = np.random.default_rng([self.seed, step]).integers(len(self.train), size=self.size)
        return shifted(self.train[chosen])


class Text:
    """Windows from random places."""

    labelled = False

    def __init__(self, train: Array, validation: Pair, batch: int, length: int, seed: int) -> None:
        self.train, self.validation, self.size, self.seed = train, validation, batch, seed
        self.window = np.arange(length + 1)
        self.fingerprint = zlib.crc32(train.data)

    def batch(self, step: int) -> Pair:
        starts = np.random.default_rng([self.seed, step]).integers(
            len(self.train) - len(self.window) + 1, size=self.size
        )
        return shifted(self.train[starts[:, None] + self.window].astype(np.int64))


@functools.cache
def digit_sequences() -> Array:
    """(1797, 65) of int64, in the data set's order: 64 pixels, and the label, 17 · 64 + the digit."""
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    digits = load_digits()
    grey = digits.data.astype(np.int64)  # 0 to 16
    return np.column_stack([grey + GREYS * np.arange(DIGITS_LENGTH), GREYS * DIGITS_LENGTH + digits.target])


def text_and_windows(length: int) -> tuple[Array, Pair]:
    """All bytes to train with, (bytes,) of uint8; and windows that are spread evenly over those to validate with.

    Refused for a length that these do not have."""
    from labs_helpers.transformer.text import text, validation_sample

    try:
        x, y = validation_sample(VALIDATION_WINDOWS, length)
    except ValueError as error:
        raise Refused(str(error)) from None
    return text("train").numpy(), (x.numpy(), y.numpy())


def shifted(sequences: Array) -> Pair:
    """(n, length + 1) → tokens and targets."""
    return sequences[:, :-1].copy(), sequences[:, 1:].copy()
