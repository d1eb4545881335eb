"""Real data that every machine has, as sequences of tokens. A batch depends only on the step, not on the layout.

digits: scikit-learn's 1,797 handwritten digits of 8 × 8 pixels. A sequence holds 64 pixels, row by row, and then the
label. A token encodes the position and the gray value of a pixel, 17 · pixel + gray. The model predicts each token from
the previous ones, so its last prediction is the digit. (With tokens for gray values only, the model first has to learn
positions. That is slow, and meanwhile a rounding error grows by five orders of magnitude, so no two layouts would have
the same loss curve.) The last 288 digits are for validation.
text: bytes of Python's standard library, see `transformer.text`.
"""

from __future__ import annotations

import functools
import zlib
from typing import Any, Protocol

import numpy as np

from labs_helpers.training.places import on_rank_0
from labs_helpers.training.settings import DIGITS_LENGTH, GRAYS, Refused

Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]  # (tokens, targets), both (sequences, length) of int64

VALIDATION_DIGITS = 288
VALIDATION_WINDOWS = 64


class Data(Protocol):
    """A data set. fingerprint: of all training data. labeled: whether a sequence's last target is its label."""

    fingerprint: int
    labelled: bool
    validation: Pair

    def batch(self, step: int) -> Pair:
        """Return the step's sequences for all ranks together."""
        ...


def load(comm: Any, name: str, batch: int, length: int, seed: int) -> Data:
    """Load a data set of `settings.VOCABULARY` by name, with `batch` sequences of `length` tokens per step.

    Every rank calls this; only rank 0 reads files and imports scikit-learn, which takes a second.
    """
    if name == "text":
        return Text(*on_rank_0(comm, lambda: text_and_windows(length)), batch, length, seed)
    return Digits(on_rank_0(comm, digit_sequences), batch, seed)


class Digits:
    """Sequences drawn in each step from the first 1,509 digits."""

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
    """Windows of text that start at random bytes."""

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
    """Return the digits as (1797, 65) of int64, in order: 64 pixels, then the label, 17 · 64 + the digit."""
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    digits = load_digits()
    gray = digits.data.astype(np.int64)  # 0 to 16
    return np.column_stack([gray + GRAYS * np.arange(DIGITS_LENGTH), GRAYS * DIGITS_LENGTH + digits.target])


def text_and_windows(length: int) -> tuple[Array, Pair]:
    """Return all training bytes, (bytes,) of uint8, and validation windows spread evenly over the other bytes.

    Raises Refused if the validation text is shorter than `length`.
    """
    from labs_helpers.transformer.text import text, validation_sample

    try:
        x, y = validation_sample(VALIDATION_WINDOWS, length)
    except ValueError as error:
        raise Refused(str(error)) from None
    return text("train").numpy(), (x.numpy(), y.numpy())


def shifted(sequences: Array) -> Pair:
    """Split sequences (n, length + 1) into tokens and targets, both (n, length)."""
    return sequences[:, :-1].copy(), sequences[:, 1:].copy()
